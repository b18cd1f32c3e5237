package oci

import "strings"

// maxLabel is the length of a DNS label (RFC 1123).
const maxLabel = 63

// ToDNSLabel makes a DNS label of a repository path or any other name. It looks
// at the first 63 bytes: ".", "/", ":" and "-" become "-", lower-case letters and
// digits stay, anything else is left out, and the result has no "-" at its ends.
// Packages that are installed as dependencies get their names this way in the
// whole field, so the result must never change.
func ToDNSLabel(name string) string {
	name = name[:min(len(name), maxLabel)]
	label := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case strings.ContainsRune("./:-", r):
			return '-'
		}
		return -1
	}, name)
	return strings.Trim(label, "-")
}

// FriendlyID joins a name that people read and a hash that makes it unique into
// one DNS label: the name is cut to 50 characters and the hash to 12. Only the
// names of files and of Kubernetes objects are made this way; content is
// identified by its whole digest.
func FriendlyID(name, hash string) string {
	const maxName, maxHash = 50, 12
	return ToDNSLabel(name[:min(len(name), maxName)] + "-" + hash[:min(len(hash), maxHash)])
}
