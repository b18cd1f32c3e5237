package yamldoc

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// MaxDepth is the largest limit for the nesting of collections: the readers use the
// stack, which must not grow without bounds.
const MaxDepth = 10_000

// Codes for exceeded limits.
var (
	ErrStreamTooLarge = errcode.Code{
		Name: "StreamTooLarge", Class: errcode.Limit,
		Cause: "The package.yaml, or a file of the folder, is larger than the limit.",
		Fix:   "Split the package into several, or raise the named limit.",
	}
	ErrYAMLLimit = errcode.Code{
		Name: "YAMLLimit", Class: errcode.Limit,
		Cause: "A YAML document is larger, deeper or more repetitive than a limit of the reader.",
		Fix:   "Make the document simpler, or raise the named limit.",
	}
)

// Limits bounds the accepted YAML. The fields have the meaning of the fields of
// xpkg.Limits. Zero means the default of the field.
type Limits struct {
	StreamBytes, Documents, DocumentBytes, ComplexBytes int
	ScalarBytes, Depth, Nodes, AliasNodes               int
}

// A LimitField describes one limit.
type LimitField struct {
	// Name is the name of the flag that sets the limit, without dashes.
	Name string
	// Usage describes the limit and its unit in a few words.
	Usage string
	// Default is the value of a limit that is not set.
	Default int
	// Value points to the limit.
	Value *int
}

// Fields returns every limit of l, in the order of the struct.
func (l *Limits) Fields() []LimitField {
	const mib = 1 << 20
	return []LimitField{
		{"limit-stream-bytes", "bytes of package.yaml", 200 * mib, &l.StreamBytes},
		{"limit-documents", "YAML documents in a package", 20_000, &l.Documents},
		{"limit-document-bytes", "bytes of one YAML document", 8 * mib, &l.DocumentBytes},
		{"limit-complex-bytes", "bytes of one YAML document with anchors or other rare syntax", mib, &l.ComplexBytes},
		{"limit-scalar-bytes", "bytes of one string", 2 * mib, &l.ScalarBytes},
		{"limit-depth", "levels of nesting", 256, &l.Depth},
		{"limit-nodes", "keys and values in one document", 1_000_000, &l.Nodes},
		{"limit-alias-nodes", "keys and values after the expansion of the aliases of one document", 10_000, &l.AliasNodes},
	}
}

func (l Limits) withDefaults() Limits {
	for _, f := range l.Fields() {
		if *f.Value <= 0 {
			*f.Value = f.Default
		}
	}
	l.Depth = min(l.Depth, MaxDepth)
	return l
}

// exceeds returns the fault for a limit that is exceeded at a line of the document.
func (l *Limits) exceeds(limit *int, line int) *Fault {
	for _, f := range l.Fields() {
		if f.Value == limit {
			return Exceeded(ErrYAMLLimit, f, line)
		}
	}
	panic("yamldoc: not a limit of these limits")
}

// Exceeded returns the fault for a limit that is exceeded at a line.
func Exceeded(code errcode.Code, f LimitField, line int) *Fault {
	return &Fault{Code: code, Line: line, What: fmt.Sprintf("more than %d %s (--%s)", *f.Value, f.Usage, f.Name)}
}
