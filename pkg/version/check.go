package version

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// A ConstraintError reports the position of a syntax error in a constraint.
type ConstraintError struct {
	// Input is the constraint as it was written.
	Input string
	// Offset is the byte offset of the error in Input.
	Offset int
	// Why describes the error.
	Why string
}

// Error returns the error in one line; see Caret.
func (e *ConstraintError) Error() string {
	return fmt.Sprintf("%.200q is not a version constraint: %s at character %d", e.Input, e.Why, e.column()+1)
}

// Caret returns two lines: the constraint, and a caret below the position of the error.
// Both are safe to print on a terminal.
func (e *ConstraintError) Caret() string {
	before := fmt.Sprintf("%q", e.Input[:e.Offset])
	return fmt.Sprintf("%.600q\n%s^", e.Input, strings.Repeat(" ", len([]rune(before))-1))
}

func (e *ConstraintError) column() int { return len([]rune(e.Input[:e.Offset])) }

var (
	// pinPattern matches a digest, or a tag with its digest.
	pinPattern = lazyregexp.New(`^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}@)?sha256:[0-9a-f]{64}$`)
	// foreignDigest matches a digest of any algorithm, with or without a tag.
	foreignDigest = lazyregexp.New(`^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}@)?([a-z0-9+._-]+):[0-9a-fA-F]{32,}$`)
)

// CheckConstraint checks the syntax of a version constraint: alternatives separated by
// "||", each of them comparisons separated by commas or spaces. A digest, with or without
// its tag, is accepted only if digest is true. The error is a *ConstraintError.
func CheckConstraint(s string, digest bool) error {
	if digest && pinPattern().MatchString(s) {
		return nil
	}
	if m := foreignDigest().FindStringSubmatchIndex(s); m != nil && s[m[4]:m[5]] != "sha256" {
		return &ConstraintError{
			Input: s, Offset: m[4], Why: fmt.Sprintf("%.20s digests are not supported, only sha256", s[m[4]:m[5]]),
		}
	}
	_, err := semver.NewConstraint(s)
	if err == nil && strings.TrimSpace(s) != "" {
		return nil
	}
	at, why := findFault(s)
	if why == "" {
		at, why = 0, "it cannot be parsed"
		if err != nil {
			why = strings.TrimPrefix(err.Error(), "semver: ")
		}
	}
	return &ConstraintError{Input: s, Offset: at, Why: why}
}

// constraintPart is one comparison, such as ">= v1.2", a comma, or "||".
var constraintPart = lazyregexp.New(`^(\|\||,|-\s|[=<>!~^]*\s*[^\s,|]+|[=<>!~^]+)`)

// findFault returns the first part of a constraint that is invalid by itself.
func findFault(s string) (at int, why string) {
	if len(s) > semver.MaxConstraintLen {
		return 0, fmt.Sprintf("it is longer than %d characters", semver.MaxConstraintLen)
	}
	expected := true // whether a comparison must follow
	for at < len(s) {
		if strings.ContainsRune(" \t\n\r", rune(s[at])) {
			at++
			continue
		}
		part := constraintPart().FindString(s[at:])
		switch {
		case part == "":
			return at, fmt.Sprintf("unexpected %q", s[at:at+1])
		case part == "||" || part == ",":
			if expected {
				return at, fmt.Sprintf("a version is missing before %q", part)
			}
			expected = true
		case strings.HasPrefix(part, "sha256:"):
			return at, "a digest must stand alone and have 64 lower-case hexadecimal digits"
		case strings.TrimSpace(part) == "-":
			expected = true
		default:
			if _, err := semver.NewConstraint(part); err != nil {
				version := strings.TrimLeft(part, "=<>!~^ ")
				if _, err := semver.NewConstraint(version); err == nil {
					return at, fmt.Sprintf("%q is not an operator", strings.TrimSpace(strings.TrimSuffix(part, version)))
				}
				return at, fmt.Sprintf("%.60q is not a version", version)
			}
			expected = false
		}
		at += len(part)
	}
	if expected {
		return len(s), "a version is missing"
	}
	return 0, ""
}
