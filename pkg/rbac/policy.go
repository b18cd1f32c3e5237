package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrPermissionDenied is the code for a package that requests permissions that the policy
// does not allow.
var ErrPermissionDenied = errcode.Code{
	Name: "PermissionDenied", Class: errcode.Invalid,
	Cause: "The package requests permissions that the permission policy of this control plane does not allow.",
	Fix:   "Ask the administrator to allow the named permissions, or use a version of the package that requests fewer.",
}

// Policy limits the permissions that packages may request (packages guide, "Provider
// Packages": "configured to reject permissions"). It does not apply to permissions for
// the resources that a package defines itself.
type Policy struct {
	// Allow lists the allowed requests. Nil allows all requests that are neither denied
	// nor dangerous; an empty list allows none.
	Allow []Rule `json:"allow,omitzero"`
	// Deny lists the denied requests and takes precedence over Allow. A request that
	// overlaps with it is denied completely.
	Deny []Rule `json:"deny,omitzero"`
}

// Rule matches requests. An empty list of groups, resources, verbs or names matches all
// of them, and so does "*".
type Rule struct {
	// Name identifies the rule in messages.
	Name string `json:"name"`
	// APIGroups are groups; "*.example.org" matches every group with that suffix.
	APIGroups []string `json:"apiGroups,omitempty"`
	// Resources are plurals, with a subresource after a slash. "*/status" matches the
	// status of every resource. A denied resource is denied with its subresources.
	Resources []string `json:"resources,omitempty"`
	Verbs     []string `json:"verbs,omitempty"`
	// ResourceNames are names of single objects.
	ResourceNames []string `json:"resourceNames,omitempty"`
	// NonResourceURLs are URL paths. A rule with URLs matches no resources.
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
}

// Denied is the cause of a refusal.
type Denied struct {
	Denials []Denial
}

// Denial is one request with the reasons for its denial.
type Denial struct {
	Request rbacv1.PolicyRule
	// Why lists the reasons: the deny rules by name, and the permissions that a rule must
	// name explicitly to allow them.
	Why []string
}

// Error returns each request with the reasons for its denial.
func (d *Denied) Error() string {
	lines := make([]string, len(d.Denials))
	for i, denial := range d.Denials {
		lines[i] = Describe(denial.Request) + " (" + strings.Join(denial.Why, ", ") + ")"
	}
	return list(lines)
}

// Check returns nil if the policy allows every request, and otherwise an error with the
// code PermissionDenied and a [Denied] as its cause.
//
// Every policy, including the zero value, denies the verbs escalate, bind and
// impersonate, with which a runtime could obtain any permission, and all resources of all
// groups, unless a rule of Allow lists the verb itself or covers everything. A request
// for all verbs includes these verbs for the resources to which they apply. Requests that
// expand to more than 65,536 single grants are denied.
func (c Policy) Check(requests []rbacv1.PolicyRule) error {
	var denied Denied
	budget := maxGrants
	for _, request := range requests {
		n := count(request, budget)
		why := c.stops(request, n > budget)
		budget -= min(n, budget)
		if len(why) > 0 {
			denied.Denials = append(denied.Denials, Denial{Request: request, Why: why})
		}
	}
	if len(denied.Denials) == 0 {
		return nil
	}
	return ErrPermissionDenied.New(&denied, "the package requests permissions that the policy does not allow")
}

// stops returns the reasons to deny a request, without duplicates.
func (c Policy) stops(request rbacv1.PolicyRule, tooMuch bool) []string {
	var why []string
	for _, rule := range c.Deny {
		if rule.touches(request) {
			why = append(why, fmt.Sprintf("denied by the rule %q", rule.Name))
		}
	}
	if tooMuch {
		return append(why, fmt.Sprintf("it covers more than %d single permissions", maxGrants))
	}
	for _, g := range grants(request) {
		for _, reason := range c.reasons(g) {
			if !slices.Contains(why, reason) {
				why = append(why, reason)
			}
		}
	}
	return why
}

// reasons returns the reasons for which the allow list does not allow a grant.
func (c Policy) reasons(g grant) []string {
	var why []string
	if c.Allow != nil && !slices.ContainsFunc(c.Allow, func(r Rule) bool { return r.covers(g) }) {
		why = append(why, "no rule of the allow list covers it")
	}
	if everything(g) && c.Allow == nil {
		why = append(why, "it covers everything, which only a rule of the allow list can allow")
	}
	for _, verb := range dangerousVerbs(g) {
		named := g
		named.verb = verb
		if !slices.ContainsFunc(c.Allow, func(r Rule) bool { return slices.Contains(r.Verbs, verb) && r.covers(named) }) {
			why = append(why, fmt.Sprintf("only a rule of the allow list that contains the verb %s can allow it", verb))
		}
	}
	return why
}

// validate returns an error for a rule that has no effect or is ambiguous.
func (r Rule) validate() error {
	switch {
	case r.Name == "":
		return errors.New("it has no name")
	case len(r.APIGroups)+len(r.Resources)+len(r.Verbs)+len(r.ResourceNames)+len(r.NonResourceURLs) == 0:
		return errors.New(`it matches nothing; write apiGroups: ["*"] to match everything`)
	case len(r.NonResourceURLs) > 0 && len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0:
		return errors.New("it matches both resources and URLs; split it into two rules")
	}
	for _, group := range r.APIGroups {
		if strings.Contains(strings.TrimPrefix(group, "*."), "*") && group != star {
			return fmt.Errorf(`the group %.80q has a "*" that is neither the whole group nor its first part`, group)
		}
	}
	return nil
}
