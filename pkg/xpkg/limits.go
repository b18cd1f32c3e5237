package xpkg

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Limits bounds the accepted input, and thereby the memory of a reader. Exceeding a limit
// is an error with the limit, the value and the flag that raises it; input is never
// truncated. Zero means the default of the field.
type Limits struct {
	// StreamBytes is the size of package.yaml. Default 200 MiB.
	StreamBytes int
	// Documents is the number of YAML documents in a stream, or of all the files
	// of a folder, empty ones included. Default 20,000.
	Documents int
	// DocumentBytes is the size of one YAML document. Default 8 MiB.
	DocumentBytes int
	// ComplexBytes is the size of one document that uses YAML beyond what
	// generators write, such as anchors: such a document costs far more memory
	// than its size. Default 1 MiB.
	ComplexBytes int
	// ScalarBytes is the size of one string. Default 2 MiB.
	ScalarBytes int
	// Depth is how deep mappings and sequences nest. Default 256, at most 10,000.
	Depth int
	// Nodes is the number of keys and values of one document. Default 1,000,000.
	Nodes int
	// AliasNodes is the number of keys and values that the aliases of one document expand
	// to. Default 10,000.
	AliasNodes int
	// SchemaProperties is the number of properties in the schemas of one
	// CustomResourceDefinition. Default 50,000.
	SchemaProperties int
	// PermissionRules is the number of rules that a provider requests. Default
	// 1,000.
	PermissionRules int
	// ObjectBytes is the size of one object as the API server receives it.
	// Default 1.5 MiB, which is what etcd stores; a request may have 3 MiB.
	ObjectBytes int
}

// A LimitField is one limit as a flag of the command line.
type LimitField struct {
	// Name is the name of the flag without dashes.
	Name string
	// Usage describes the limit and its unit in a few words.
	Usage string
	// Default is the value that holds when the flag is not given.
	Default int
	// Value is where the limit is kept.
	Value *int
}

// Fields lists every limit of l, so that a command can offer a flag for each.
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
		{"limit-alias-nodes", "keys and values that aliases of one document stand for", 10_000, &l.AliasNodes},
		{"limit-schema-properties", "properties in the schemas of one CustomResourceDefinition", 50_000, &l.SchemaProperties},
		{"limit-permission-rules", "rules in permissionRequests", 1_000, &l.PermissionRules},
		{"limit-object-bytes", "bytes of one object as JSON", 3 * mib / 2, &l.ObjectBytes},
	}
}

// withDefaults fills the fields that are not set.
func (l Limits) withDefaults() Limits {
	for _, f := range l.Fields() {
		if *f.Value <= 0 {
			*f.Value = f.Default
		}
	}
	// The readers use the stack, which must not grow without bounds.
	l.Depth = min(l.Depth, maxDepth)
	return l
}

const maxDepth = 10_000

// ErrStreamTooLarge is the code for a package whose whole size breaks a limit.
var ErrStreamTooLarge = errcode.Code{
	Name: "StreamTooLarge", Class: errcode.Limit,
	Cause: "The package.yaml, or a file of the folder, is larger than the limit.",
	Fix:   "Split the package into several, or raise the named limit.",
}

// ErrYAMLLimit is the code for a document that breaks a limit of the reader.
var ErrYAMLLimit = errcode.Code{
	Name: "YAMLLimit", Class: errcode.Limit,
	Cause: "A YAML document is larger, deeper or more repetitive than a limit of the reader.",
	Fix:   "Make the document simpler, or raise the named limit.",
}

// exceeds is the fault for a limit that a document breaks at a line of its own.
func (l *Limits) exceeds(limit *int, line int) *fault {
	return l.breach(ErrYAMLLimit, limit, line)
}

func (l *Limits) breach(code errcode.Code, limit *int, line int) *fault {
	for _, f := range l.Fields() {
		if f.Value == limit {
			return &fault{code: code, line: line, what: fmt.Sprintf("more than %d %s (--%s)", *limit, f.Usage, f.Name)}
		}
	}
	return &fault{code: code, line: line, what: "a limit is exceeded"}
}
