package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrPermissionDenied is the failure of a package that requests more than the
// administrator lets packages have.
var ErrPermissionDenied = failure.Register(failure.Code{
	Name: "PermissionDenied", Class: failure.Invalid,
	Cause: "The package requests permissions that the ceiling of this control plane does not allow.",
	Fix:   "Ask the administrator to allow what the message names, or use a version of the package that requests less.",
})

// Ceiling is the most that packages may request (packages guide, "Provider
// Packages": "configured to reject permissions"). What a package gets for the
// types that it defines itself is not under it.
type Ceiling struct {
	// Allow lists what may be requested. Nil, it allows everything that is not
	// denied and not dangerous; empty, it allows nothing.
	Allow []Rule `json:"allow,omitzero"`
	// Deny lists what may not be requested, whatever Allow says. A request that
	// touches it is refused as a whole.
	Deny []Rule `json:"deny,omitzero"`
}

// Rule names requests. What it does not name of groups, resources, verbs and names
// is all of them, and so is "*".
type Rule struct {
	// Name is what messages call the rule.
	Name string `json:"name"`
	// APIGroups are groups; "*.example.org" is every group that ends so.
	APIGroups []string `json:"apiGroups,omitempty"`
	// Resources are plurals, with a subresource after a slash. "*/status" is that
	// subresource of everything. A denied resource is denied with its subresources.
	Resources []string `json:"resources,omitempty"`
	Verbs     []string `json:"verbs,omitempty"`
	// ResourceNames are names of single objects.
	ResourceNames []string `json:"resourceNames,omitempty"`
	// NonResourceURLs make the rule one about URLs, and about no resource.
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
}

// Denied is the cause of a refusal.
type Denied struct {
	Denials []Denial
}

// Denial is one request and what stops it.
type Denial struct {
	Request rbacv1.PolicyRule
	// Why are the reasons: for a deny rule, and for what only a rule that names it
	// can allow, with the name of the rule or of what has to be named.
	Why []string
}

// Error names each request with what stops it.
func (d *Denied) Error() string {
	lines := make([]string, len(d.Denials))
	for i, denial := range d.Denials {
		lines[i] = Describe(denial.Request) + " (" + strings.Join(denial.Why, ", ") + ")"
	}
	return list(lines)
}

// Check fails with PermissionDenied, with [Denied] as its cause, unless every
// request is under the ceiling.
//
// The verbs escalate, bind and impersonate, which let a program take any right,
// and everything of every group are over each ceiling, also over the zero
// one, unless a rule of Allow lists the verb itself, or covers everything. A
// request for all verbs is one for these verbs where they mean something. Requests
// that stand for more than 65,536 single grants are refused.
func (c Ceiling) Check(requests []rbacv1.PolicyRule) error {
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
	return ErrPermissionDenied.New(&denied, "the package requests permissions over the ceiling")
}

// stops gives the reasons against a request, each once.
func (c Ceiling) stops(request rbacv1.PolicyRule, tooMuch bool) []string {
	var why []string
	for _, rule := range c.Deny {
		if rule.touches(request) {
			why = append(why, fmt.Sprintf("denied by the rule %q", rule.Name))
		}
	}
	if tooMuch {
		return append(why, fmt.Sprintf("it stands for more than %d single permissions", maxGrants))
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

// reasons are those of the allow-list against one grant.
func (c Ceiling) reasons(g grant) []string {
	var why []string
	if c.Allow != nil && !slices.ContainsFunc(c.Allow, func(r Rule) bool { return r.covers(g) }) {
		why = append(why, "no rule of the allow-list covers it")
	}
	if everything(g) && c.Allow == nil {
		why = append(why, "it is everything, which only a rule of an allow-list can allow")
	}
	for _, verb := range dangerousVerbs(g) {
		named := g
		named.verb = verb
		if !slices.ContainsFunc(c.Allow, func(r Rule) bool { return slices.Contains(r.Verbs, verb) && r.covers(named) }) {
			why = append(why, fmt.Sprintf("only a rule of the allow-list that lists the verb %s can allow it", verb))
		}
	}
	return why
}

// validate finds what cannot be meant.
func (r Rule) validate() error {
	switch {
	case r.Name == "":
		return errors.New("it has no name")
	case len(r.APIGroups)+len(r.Resources)+len(r.Verbs)+len(r.ResourceNames)+len(r.NonResourceURLs) == 0:
		return errors.New(`it does not say what it is about; write apiGroups: ["*"] if that is everything`)
	case len(r.NonResourceURLs) > 0 && len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0:
		return errors.New("it is about resources and about URLs; make two rules of it")
	}
	for _, group := range r.APIGroups {
		if strings.Contains(strings.TrimPrefix(group, "*."), "*") && group != star {
			return fmt.Errorf(`the group %.80q has a "*" that is neither all of it nor its first part`, group)
		}
	}
	return nil
}
