package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrInvalidYAML is the code for text that is not YAML.
var ErrInvalidYAML = errcode.Code{
	Name: "InvalidYAML", Class: errcode.Invalid,
	Cause: "A document is not well-formed YAML.",
	Fix:   "Correct the document at the named line.",
}

// generalJSON reads a document with two general libraries: one exposes the syntax, so
// that unsupported features are rejected before they are expanded, and the other
// interprets values like all Kubernetes tools.
func generalJSON(raw []byte, limits *Limits, lenient bool) (out []byte, warning *Fault, err error) {
	// A panic of the parser on malicious input must not end the process.
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, &Fault{Code: ErrInvalidYAML, What: Printable(fmt.Sprintf("the YAML reader failed: %v", p))}
		}
	}()
	if len(raw) > limits.ComplexBytes {
		return nil, nil, limits.exceeds(&limits.ComplexBytes, 0)
	}
	root, err := parseNodes(raw)
	if err != nil {
		return nil, nil, err
	}
	in := &inspector{limits: limits, lenient: lenient, weights: map[*yaml3.Node]weight{}}
	if f := in.inspect(root); f != nil {
		return nil, nil, f
	}
	convert := yaml.YAMLToJSONStrict
	if lenient {
		convert = yaml.YAMLToJSON
	}
	if out, err = convert(raw); err != nil {
		return nil, nil, yamlFault(err)
	}
	return canonical.Normalize(out), in.duplicate, nil
}

// parseNodes parses the one document in raw.
func parseNodes(raw []byte) (*yaml3.Node, error) {
	decoder := yaml3.NewDecoder(bytes.NewReader(raw))
	var root, extra yaml3.Node
	if err := decoder.Decode(&root); err != nil {
		return nil, yamlFault(err)
	}
	// The libraries stop at the end of the first value and ignore the rest.
	err := decoder.Decode(&extra)
	if errors.Is(err, io.EOF) {
		return &root, nil
	}
	f := &Fault{Code: ErrInvalidYAML, Line: extra.Line, What: "text after the end of the document"}
	if err != nil {
		f.Line = yamlFault(err).Line
	}
	return nil, f
}

var lineOfError = lazyregexp.New(`^(?:yaml: )?(?:unmarshal errors:\n\s*)?(?:line (\d+): )?`)

// yamlFault returns a fault for an error of the libraries, with the line from its
// message.
func yamlFault(err error) *Fault {
	text := err.Error()
	m := lineOfError().FindStringSubmatch(text)
	line, _ := strconv.Atoi(m[1]) // 0 if there is no line
	return &Fault{Code: ErrInvalidYAML, Line: line, What: Printable(text[len(m[0]):])}
}
