package access

import (
	"slices"
	"strings"
)

// longestRepository is the maximum length of the name of a repository, as in the OCI distribution specification.
const longestRepository = 255

// ValidRepository reports whether a name has the syntax of a repository in the OCI distribution specification.
func ValidRepository(name string) bool {
	if name == "" || len(name) > longestRepository {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if !validPart(part) {
			return false
		}
	}
	return true
}

// validPart reports whether a part of a name consists of lower-case letters and digits, with single separators
// between them: ".", "_", "__" or any number of "-".
func validPart(part string) bool {
	if part == "" || !isAlphanumeric(part[0]) || !isAlphanumeric(part[len(part)-1]) {
		return false
	}
	separator := ""
	for i := range len(part) {
		if isAlphanumeric(part[i]) {
			separator = ""
			continue
		}
		separator += part[i : i+1]
		if separator != "." && separator != "_" && separator != "__" && strings.Trim(separator, "-") != "" {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// reservedNames are first parts of repositories that could be confused with a path of the server.
var reservedNames = []string{
	"admin", "api", "assets", "diff", "docs", "feed", "g", "healthz", "index", "k", "metrics", "none", "p", "schemas",
	"search",
	"static", "token", "v2",
}

// CheckNew returns an error if no repository with a name can be created: it differs from a reserved or an
// existing one at most by case, or by "-", "_" and ".".
func (p *Policy) CheckNew(name string, existing []string) error {
	first, _, _ := strings.Cut(name, "/")
	for _, reserved := range slices.Concat(reservedNames, p.ReservedNames) {
		if Fold(reserved) == Fold(first) {
			return ErrReservedName.New(
				nil, "the repository %s cannot be created: names that begin with %q are reserved", name, reserved,
			)
		}
	}
	for _, other := range existing {
		if Similar(other, name) {
			return ErrReservedName.New(nil, "the repository %s cannot be created: its name is too similar to %s", name, other)
		}
	}
	return nil
}

// Similar reports whether two different names of repositories are so similar that only one of them can be created.
func Similar(a, b string) bool { return a != b && Fold(a) == Fold(b) }

// Fold returns the form in which similar names are equal: without separators, except one between two digits, because it
// changes a number.
func Fold(name string) string {
	var folded strings.Builder
	separated, last := false, byte(0)
	for _, c := range []byte(strings.ToLower(name)) {
		if c == '-' || c == '_' || c == '.' {
			separated = true
			continue
		}
		if separated && isDigit(c) && isDigit(last) {
			folded.WriteByte('-')
		}
		separated, last = false, c
		folded.WriteByte(c)
	}
	return folded.String()
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
