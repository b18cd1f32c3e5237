// Package yamldoc reads the YAML of packages.
//
//	stream ──Reader.Split──▶ Documents ──Reader.JSON──▶ canonical JSON
//
// A stream is split into documents without changing a byte. A document is converted to
// canonical JSON by one of two readers: the fast reader covers the YAML that generators
// write, and gives up if it is not certain of the interpretation; the general reader
// interprets values with sigs.k8s.io/yaml, like all Kubernetes tools, after it has
// rejected YAML without a single meaning in JSON. Differential fuzz tests compare both.
//
// Every problem is a [Fault] with the line within the document. Exceeding one of the
// [Limits] is a fault as well; input is never truncated.
package yamldoc
