// Package lazyregexp compiles regular expressions at their first use. A regular expression in a package variable costs
// time in the start of every command, including commands that never use it.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. It compiles the expression at its first call, and panics
// if the expression is invalid.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
