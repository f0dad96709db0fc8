// AgeEncryption: its first file comes with the next commit.
