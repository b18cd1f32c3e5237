package rbac

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// PolicyKey is the key of a ConfigMap that contains a policy.
const PolicyKey = "policy.yaml"

// maxPolicyBytes is the maximum size of a ConfigMap.
const maxPolicyBytes = 1 << 20

// ErrPolicyUnreadable is the code for a configured policy that cannot be read. The
// manager grants nothing in that state.
var ErrPolicyUnreadable = errcode.Code{
	Name: "PermissionPolicyUnreadable", Class: errcode.NotFound,
	Cause: "The configured permission policy cannot be read, so no permissions are granted to packages.",
	Fix:   "Restore or correct the named file or ConfigMap.",
}

// ErrInvalidPolicy is the code for an invalid policy. The manager grants nothing in that
// state.
var ErrInvalidPolicy = errcode.Code{
	Name: "InvalidPermissionPolicy", Class: errcode.Usage,
	Cause: "The permission policy is not valid.",
	Fix:   "Correct the named field; the guide on permissions shows an example.",
}

// Parse reads a policy from YAML: the lists allow and deny, or a ConfigMap that contains
// them under [PolicyKey]. An unknown field is an error, because the policy could
// otherwise allow more than intended. It fails with ErrInvalidPolicy.
func Parse(raw []byte) (Policy, error) {
	c, err := parse(raw)
	if err != nil {
		return Policy{}, ErrInvalidPolicy.New(err, "cannot read the permission policy")
	}
	return c, nil
}

// ParseData reads the policy in the data of a ConfigMap, like [Parse].
func ParseData(data map[string]string) (Policy, error) {
	c, err := parseData(data)
	if err != nil {
		return Policy{}, ErrInvalidPolicy.New(err, "cannot read the permission policy")
	}
	return c, nil
}

func parseData(data map[string]string) (Policy, error) {
	text, ok := data[PolicyKey]
	if !ok {
		return Policy{}, fmt.Errorf("the ConfigMap has no key %s", PolicyKey)
	}
	return parse([]byte(text))
}

func parse(raw []byte) (Policy, error) {
	if len(raw) > maxPolicyBytes {
		return Policy{}, fmt.Errorf("it has %d bytes, at most %d are allowed", len(raw), maxPolicyBytes)
	}
	if err := oneDocument(raw); err != nil {
		return Policy{}, err
	}
	text, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return Policy{}, err
	}
	var outer struct {
		Kind string            `json:"kind"`
		Data map[string]string `json:"data"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &outer); err == nil && outer.Kind == "ConfigMap" {
		return parseData(outer.Data)
	}
	// Field names are case-sensitive. Otherwise saysSomething would not find a list with
	// another spelling, and a policy without a list allows everything.
	var c Policy
	unknown, err := kjson.UnmarshalStrict(text, &c)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return Policy{}, err
	}
	if err := errors.Join(saysSomething(text), c.validate()); err != nil {
		return Policy{}, err
	}
	return c, nil
}

// saysSomething returns an error for a list without a value ("allow:"), which would allow
// everything.
func saysSomething(text []byte) error {
	var lists map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &lists); err != nil {
		return err
	}
	if len(lists) == 0 {
		return errors.New("it has neither allow nor deny")
	}
	for _, name := range []string{"allow", "deny"} {
		if value, ok := lists[name]; ok && value == nil {
			return fmt.Errorf("%s has no value; write [] for an empty list", name)
		}
	}
	return nil
}

// oneDocument returns an error if there are further documents, which would be ignored.
func oneDocument(raw []byte) error {
	for i, line := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		if i > 0 && bytes.HasPrefix(line, []byte("---")) {
			return errors.New("it has more than one document")
		}
	}
	return nil
}

func (c Policy) validate() error {
	seen := map[string]bool{}
	for i, r := range slices.Concat(c.Allow, c.Deny) {
		list, at := "allow", i+1
		if i >= len(c.Allow) {
			list, at = "deny", i+1-len(c.Allow)
		}
		if err := r.validate(); err != nil {
			return fmt.Errorf("rule %d of %s (%.80q): %w", at, list, r.Name, err)
		}
		if seen[r.Name] {
			return fmt.Errorf("two rules have the name %.80q", r.Name)
		}
		seen[r.Name] = true
	}
	return nil
}
