package oci

import "strings"

// maxLabel is the length of a DNS label (RFC 1123).
const maxLabel = 63

// ToDNSLabel converts a repository path or any other name to a DNS label. It uses the
// first 63 bytes: ".", "/", ":" and "-" become "-", lower-case letters and digits stay,
// all other characters are dropped, and the result has no "-" at its ends. Other
// Crossplane tools derive the names of dependencies in the same way, so the result must
// never change.
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

// FriendlyID joins a readable name and a unique hash into one DNS label. It truncates the
// name to 50 characters and the hash to 12. Use it only for names of files and Kubernetes
// objects; only the whole digest identifies content.
func FriendlyID(name, hash string) string {
	const maxName, maxHash = 50, 12
	return ToDNSLabel(name[:min(len(name), maxName)] + "-" + hash[:min(len(hash), maxHash)])
}
