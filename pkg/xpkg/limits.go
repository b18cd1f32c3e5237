package xpkg

import (
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// Limits bounds the accepted input, and thereby the memory of a reader. Exceeding a limit
// is an error with the limit, the value and the flag that raises it; input is never
// truncated. Zero means the default of the field.
type Limits struct {
	// StreamBytes is the size of package.yaml. Default 200 MiB.
	StreamBytes int
	// Documents is the number of YAML documents in a stream, or of all the files of a
	// folder, including empty ones. Default 20,000.
	Documents int
	// DocumentBytes is the size of one YAML document. Default 8 MiB.
	DocumentBytes int
	// ComplexBytes is the size of one document with YAML that generators do not write,
	// such as anchors: such a document costs far more memory than its size. Default
	// 1 MiB.
	ComplexBytes int
	// ScalarBytes is the size of one string. Default 2 MiB.
	ScalarBytes int
	// Depth is the nesting depth of mappings and sequences. Default 256, at most 10,000.
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
	// Default 1.5 MiB, the limit of etcd; a request may have 3 MiB.
	ObjectBytes int
}

// A LimitField is one limit as a flag of the command line.
type LimitField struct {
	// Name is the name of the flag without dashes.
	Name string
	// Usage describes the limit and its unit in a few words.
	Usage string
	// Default is the value of a limit that is not set.
	Default int
	// Value points to the limit.
	Value *int
}

// Fields returns every limit of l, so that a command can offer a flag for each.
func (l *Limits) Fields() []LimitField {
	yaml := l.yaml()
	var fields []LimitField
	for i, value := range []*int{
		&l.StreamBytes, &l.Documents, &l.DocumentBytes, &l.ComplexBytes, &l.ScalarBytes, &l.Depth, &l.Nodes, &l.AliasNodes,
	} {
		f := LimitField(yaml.Fields()[i])
		f.Value = value
		fields = append(fields, f)
	}
	return append(fields,
		LimitField{
			"limit-schema-properties", "properties in the schemas of one CustomResourceDefinition", 50_000, &l.SchemaProperties,
		},
		LimitField{"limit-permission-rules", "rules in permissionRequests", 1_000, &l.PermissionRules},
		LimitField{"limit-object-bytes", "bytes of one object as JSON", 3 << 19, &l.ObjectBytes},
	)
}

// yaml returns the limits of the YAML reader.
func (l Limits) yaml() yamldoc.Limits {
	return yamldoc.Limits{
		StreamBytes: l.StreamBytes, Documents: l.Documents, DocumentBytes: l.DocumentBytes, ComplexBytes: l.ComplexBytes,
		ScalarBytes: l.ScalarBytes, Depth: l.Depth, Nodes: l.Nodes, AliasNodes: l.AliasNodes,
	}
}

// WithDefaults returns the limits with the default for each field that is not set.
func (l Limits) WithDefaults() Limits {
	for _, f := range l.Fields() {
		if *f.Value <= 0 {
			*f.Value = f.Default
		}
	}
	l.Depth = min(l.Depth, yamldoc.MaxDepth)
	return l
}

// Exceeded returns the message for an exceeded limit: the value and the flag that raises it.
// Limit points to a field of l.
func (l *Limits) Exceeded(limit *int) string {
	for _, f := range l.Fields() {
		if f.Value == limit {
			return yamldoc.Exceeded(errcode.Code{}, yamldoc.LimitField(f), 0).What
		}
	}
	panic("xpkg: the pointer is not a field of the limits")
}
