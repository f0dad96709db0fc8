# A Homebrew formula that builds drydock from its sources. Untested: it has never run on a Mac.
#
# To use it, put it into a tap (a repository OWNER/homebrew-tap, in Formula/), and replace in `url` and `head` the URL by
# that of the repository with Drydock's sources; then `brew install OWNER/tap/drydock`. Without a release, `url` has nothing
# to name yet: `brew install --HEAD OWNER/tap/drydock` builds the branch main.
class Drydock < Formula
  desc "Back up, migrate and restore an app's data, each in one atomic step"
  homepage "https://github.com/OWNER/drydock"
  url "https://github.com/OWNER/drydock.git", tag: "0.1.0"
  license "Apache-2.0"
  head "https://github.com/OWNER/drydock.git", branch: "main"

  depends_on "jq" => :build
  depends_on "pkgconf" => :build
  depends_on xcode: ["26.0", :build] # Swift 6.2
  depends_on "libarchive" # macOS has an older one, without headers
  depends_on macos: :sequoia
  depends_on "openssl@3"
  depends_on "zstd"
  uses_from_macos "zlib"
  uses_from_macos "sqlite"

  def install
    system "swift", "build", "--disable-sandbox", "-c", "release", "--product", "drydock"
    bin.install ".build/release/drydock"
    generate_completions_from_executable(bin/"drydock", "--generate-completion-script")
    ENV["SOURCE_DATE_EPOCH"] = time.to_i.to_s
    system "Scripts/packaging/manual", bin/"drydock", ".build/checkouts/swift-argument-parser", "man"
    man1.install Dir["man/*.1"]
  end

  test do
    assert_equal version.to_s, shell_output("#{bin}/drydock --version").strip unless head?
    system bin/"drydock", "keygen", "-o", "key.txt"
    mkdir "Notes"
    system bin/"drydock", "snapshot", "Notes", "-o", "notes.tar.zst", "--no-encryption"
    system bin/"drydock", "verify", "--data", "notes.tar.zst"
  end
end
