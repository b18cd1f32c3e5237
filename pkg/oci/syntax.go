package oci

import "fmt"

// SyntaxError is a syntax error with its position in the input.
type SyntaxError struct {
	// Input is the text that was read.
	Input string
	// Offset is the byte, counted from 0, at which Reason applies. It equals the
	// length of Input when something is missing at the end.
	Offset int
	Reason string
}

// Error points at the place with a caret, in one line, because conditions of
// Kubernetes objects have no second one.
func (e *SyntaxError) Error() string {
	const around = 24
	start := max(0, e.Offset-around)
	end := min(len(e.Input), e.Offset+around)
	before, after := e.Input[start:e.Offset], e.Input[e.Offset:end]
	if start > 0 {
		before = "…" + before
	}
	if end < len(e.Input) {
		after += "…"
	}
	return fmt.Sprintf("%s, at character %d: %q", e.Reason, e.Offset+1, before+"^"+after)
}

func syntaxError(input string, offset int, reason string, args ...any) error {
	return &SyntaxError{Input: input, Offset: min(offset, len(input)), Reason: fmt.Sprintf(reason, args...)}
}
