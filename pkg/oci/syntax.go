package oci

import "fmt"

// SyntaxError is a syntax error with its position in the input.
type SyntaxError struct {
	// Input is the parsed text.
	Input string
	// Offset is the byte offset of the error. It equals the length of Input if the input
	// is incomplete.
	Offset int
	Reason string
}

// Error returns the reason, the position and the input in one line, for conditions of
// Kubernetes objects.
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
