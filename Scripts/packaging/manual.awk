# Corrects a man page of swift-argument-parser's generator: it puts a help text's lines into the page as they are, where
# indented lines would be filled, a dot at the start of a line would be a macro, and quotes would become typographic.
# Pages are named drydock-migrate, as git's are, not drydock.migrate.

function literal(text) {
  gsub(/`/, "\\(ga", text)
  gsub(/'/, "\\(aq", text)
  return text
}

function end_display() {
  if (display) print ".Ed"
  display = 0
}

function print_text(line) {
  if (line ~ /^\./) line = "\\&" line
  print line
}

/^\.[A-Z]/ {
  end_display()
  if ($1 == ".Dt" || $1 == ".Xr") gsub(/\./, "-", $2)
  if ($1 == ".Dt") root = $2 == "DRYDOCK"
  if ($1 == ".Xr" && $2 == "drydock-help") next
  # The name is a word, for `man` and `whatis`; in the synopsis it is what is typed.
  if ($1 == ".Nm" && NF > 1) {
    typed = $0
    gsub(/"/, "")
    gsub(/ /, "-")
    sub(/-/, " ")
  } else if ($1 == ".Nm") $0 = typed
  if ($1 == ".Nd") sub(/\."$/, "\"")
  if ($1 == ".Sh" && /SEE ALSO/) references = 1
  if ($1 == ".Ex" && !root) {
    print "The exit codes are listed in"
    print ".Xr drydock 1 ."
  } else if ($1 != ".Pp") print
  # Other macros make a paragraph themselves.
  blank = $1 == ".Pp"
  next
}

/^\.\\"/ { print; next }

/^$/ { blank = 1; next }

/^  / {
  if (blank) print display ? "" : ".Pp"
  if (!display) print ".Bd -literal -compact"
  display = 1
  blank = 0
  text = literal($0)
  gsub(/-/, "\\-", text)
  print text
  next
}

{
  end_display()
  if (blank) print ".Pp"
  blank = 0
  text = literal($0)
  gsub(/--/, "\\-\\-", text)
  # Each sentence starts a line.
  while (match(text, /[^ .][.?!] +[^ ]/)) {
    print_text(substr(text, 1, RSTART + 1))
    text = substr(text, RSTART + RLENGTH - 1)
  }
  print_text(text)
}

END {
  end_display()
  if (!root && !references) {
    print ".Sh \"SEE ALSO\""
    print ".Xr drydock 1"
  }
}
