package xpkg

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Severity is the effect of a finding on its package.
type Severity int

// Severities. Off is only used in a Policy.
const (
	Off Severity = iota
	Warning
	Error
)

// String returns "off", "warning" or "error".
func (s Severity) String() string {
	return [...]string{"off", "warning", "error"}[s]
}

// A Finding is a problem of a package.
type Finding struct {
	// Code is stable and belongs to one of the documented classes.
	Code     errcode.Code
	Severity Severity
	// Message describes the problem, in lower case and without a full stop. Text from the
	// package is quoted in it, so that it is safe to print.
	Message string
	// Other is the place of another document that Message refers to at its end. It is empty if there is none.
	Other Place
	// File is the path within the folder, or the name of the stream.
	File string
	// Line counts from 1; 0 if the finding refers to no particular line.
	Line int
	// Document counts from 1 within File; 0 if the finding refers to no document.
	Document int
	// Kind and Name identify the object, if known.
	Kind, Name string
	// Fix describes the remedy.
	Fix string
	// Excerpt is the source text and, on a second line, a caret below the position of the
	// problem. It can be empty. It is safe to print.
	Excerpt string
}

// Place is a line of a file.
type Place struct {
	// File is the path within the folder, or the name of the stream.
	File string
	// Line counts from 1; 0 if it is not known.
	Line int
}

// String returns the place as "file:line", or as much of it as is known, in one line.
func (p Place) String() string {
	file := strings.ReplaceAll(p.File, "\n", `\n`)
	if file != "" && p.Line > 0 {
		return fmt.Sprintf("%s:%d", file, p.Line)
	}
	return file
}

// String returns one line: position, severity, code, message.
func (f Finding) String() string {
	var b strings.Builder
	if p := f.Place(); p != "" {
		b.WriteString(p + ": ")
	}
	fmt.Fprintf(&b, "%s %s: %s", f.Severity, f.Code.Name, f.Description())
	return b.String()
}

// Place returns the position as "file:line", or as much of it as is known, in one line.
func (f Finding) Place() string { return Place{f.File, f.Line}.String() }

// Text returns the message with the place that it refers to.
func (f Finding) Text() string {
	if f.Other.File == "" {
		return f.Message
	}
	return f.Message + " at " + f.Other.String()
}

// Description returns the message after the number of the document and the kind and name of
// the object.
func (f Finding) Description() string {
	var subject []string
	if f.Document > 0 {
		subject = append(subject, fmt.Sprintf("document %d", f.Document))
	}
	if f.Kind != "" {
		subject = append(subject, safe(f.Kind))
	}
	if f.Name != "" {
		subject = append(subject, fmt.Sprintf("%.260q", f.Name))
	}
	if len(subject) == 0 {
		return f.Text()
	}
	return strings.Join(subject, ", ") + ": " + f.Text()
}

// safe returns s unchanged if it is a plain word, and otherwise quoted and truncated.
func safe(s string) string {
	if q := fmt.Sprintf("%.100q", s); q != `"`+s+`"` || strings.Contains(s, " ") {
		return q
	}
	return s
}

// MarshalJSON encodes the code and the severity as strings.
func (f Finding) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Code     string `json:"code"`
		Severity string `json:"severity"`
		Message  string `json:"message"`
		File     string `json:"file,omitempty"`
		Line     int    `json:"line,omitempty"`
		Document int    `json:"document,omitempty"`
		Kind     string `json:"kind,omitempty"`
		Name     string `json:"name,omitempty"`
		Fix      string `json:"fix,omitempty"`
		Excerpt  string `json:"excerpt,omitempty"`
	}{f.Code.Name, f.Severity.String(), f.Text(), f.File, f.Line, f.Document, f.Kind, f.Name, f.Fix, f.Excerpt})
}

// A Refusal is the cause of the error for a refused package. It holds all findings,
// including warnings, in document order.
type Refusal struct{ Findings []Finding }

// Error returns the first error and the number of further errors.
func (r *Refusal) Error() string {
	fatal := errorsOf(r.Findings)
	if len(fatal) == 0 {
		return "no error"
	}
	text := fatal[0].Description()
	if p := fatal[0].Place(); p != "" {
		text = p + ": " + text
	}
	if more := len(fatal) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// Failed returns an error if any of the findings is an error, and nil otherwise. Findings
// returns the findings of such an error.
func Failed(findings []Finding) error {
	if len(errorsOf(findings)) == 0 {
		return nil
	}
	return refuse(findings, "the package is refused")
}

// Findings returns all findings of an error of this package, and nil for any other error.
func Findings(err error) []Finding {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Findings
	}
	return nil
}

// refuse returns the error for findings of which at least one is an error.
func refuse(findings []Finding, what string) error {
	first := errorsOf(findings)[0]
	err := first.Code.New(&Refusal{Findings: findings}, "%s", what)
	err.Do = first.Fix
	return err
}

func errorsOf(findings []Finding) []Finding {
	var out []Finding
	for _, f := range findings {
		if f.Severity == Error {
			out = append(out, f)
		}
	}
	return out
}

// SortFindings sorts findings in document order.
func SortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Document, b.Document))
	})
}
