package desired

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// WebhookRule is one resource that a webhook covers: the API server calls the runtime of
// the package for each of the operations.
type WebhookRule struct {
	// Mutates reports whether the webhook may change objects.
	Mutates bool
	// Operations are operations of Kubernetes, such as CREATE, or "*".
	Operations []string
	// Group is an API group, "" for the core group, or "*" for all groups.
	Group string
	// Resource is as in a webhook configuration, such as "pods", "pods/status" or "*/*".
	Resource string
}

const coreGroup = "core"

// String returns the rule in the form that [ParseWebhookRules] reads, such as
// "validate CREATE,UPDATE apps/deployments" or "mutate * core/pods".
func (r WebhookRule) String() string {
	verb, group := "validate", r.Group
	if r.Mutates {
		verb = "mutate"
	}
	if group == "" {
		group = coreGroup
	}
	return verb + " " + strings.Join(r.Operations, ",") + " " + group + "/" + r.Resource
}

// FormatWebhookRules returns rules as one line.
func FormatWebhookRules(rules []WebhookRule) string {
	text := make([]string, len(rules))
	for i, r := range rules {
		text[i] = r.String()
	}
	return strings.Join(text, "; ")
}

// ParseWebhookRules parses rules that are separated by semicolons. It ignores invalid rules, so that they cover
// nothing.
func ParseWebhookRules(text string) []WebhookRule {
	var out []WebhookRule
	for entry := range strings.SplitSeq(text, ";") {
		fields := strings.Fields(entry)
		if len(fields) != 3 || fields[0] != "validate" && fields[0] != "mutate" {
			continue
		}
		group, resource, ok := strings.Cut(fields[2], "/")
		if !ok {
			continue
		}
		if group == coreGroup {
			group = ""
		}
		out = append(out, WebhookRule{fields[0] == "mutate", strings.Split(fields[1], ","), group, resource})
	}
	return out
}

// UncoveredWebhookRules returns the rules that no allowed rule covers.
func UncoveredWebhookRules(allowed, rules []WebhookRule) []WebhookRule {
	return slices.DeleteFunc(slices.Clone(rules), func(r WebhookRule) bool {
		return slices.ContainsFunc(allowed, func(a WebhookRule) bool { return a.covers(r) })
	})
}

// covers reports whether the rule covers at least the same requests as another one.
func (r WebhookRule) covers(o WebhookRule) bool {
	operations := slices.Contains(r.Operations, "*") || sets.New(r.Operations...).HasAll(o.Operations...)
	return r.Mutates == o.Mutates && operations && (r.Group == "*" || r.Group == o.Group) &&
		coversResource(r.Resource, o.Resource)
}

func coversResource(r, o string) bool {
	resource, subresource, _ := strings.Cut(r, "/")
	other, otherSub, _ := strings.Cut(o, "/")
	return r == "*/*" ||
		(resource == "*" || resource == other) && (subresource == otherSub || subresource == "*" && otherSub != "")
}

// OutsideWebhookRules returns the rules of the webhook configurations among the objects that
// cover resources that the package does not define. Wildcards for resources are among them: other
// packages can define resources in the same API group. Selectors and conditions of a webhook do not
// matter: they narrow down the objects of a request, and the package author can change them.
func (o *Objects) OutsideWebhookRules() ([]WebhookRule, error) {
	own := sets.New(o.Offered()...)
	var out []WebhookRule
	for _, d := range o.want {
		if !plan.IsWebhookConfiguration(d.Ref) {
			continue
		}
		raw, err := o.Content(d.Ref)
		if err != nil {
			return nil, err
		}
		rules, err := webhookRules(raw, strings.HasPrefix(d.Ref.Kind, "Mutating"))
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", d.Ref.Kind, d.Ref.Name, err)
		}
		out = append(out, slices.DeleteFunc(rules, func(r WebhookRule) bool { return r.within(own) })...)
	}
	slices.SortFunc(out, func(a, b WebhookRule) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(out, func(a, b WebhookRule) bool { return a.String() == b.String() }), nil
}

// within reports whether the rule covers one resource of own, or its subresources. No package owns a resource
// of Kubernetes or Crossplane, even if it contains a CRD of that name.
func (r WebhookRule) within(own sets.Set[schema.GroupResource]) bool {
	plural, _, _ := strings.Cut(r.Resource, "/")
	resource := schema.GroupResource{Group: r.Group, Resource: plural}
	return own.Has(resource) && !rbac.Reserved(resource)
}

// webhookRules returns the rules of a webhook configuration, one for each resource of each
// group.
func webhookRules(raw []byte, mutates bool) ([]WebhookRule, error) {
	var configuration struct {
		Webhooks []struct {
			Rules []struct {
				Operations []string `json:"operations"`
				APIGroups  []string `json:"apiGroups"`
				Resources  []string `json:"resources"`
			} `json:"rules"`
		} `json:"webhooks"`
	}
	if err := json.Unmarshal(raw, &configuration); err != nil {
		return nil, err
	}
	var out []WebhookRule
	for _, w := range configuration.Webhooks {
		for _, rule := range w.Rules {
			var operations []string
			for _, operation := range rule.Operations {
				operations = append(operations, plainWord(operation))
			}
			slices.Sort(operations)
			if slices.Contains(operations, "*") {
				operations = []string{"*"}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					out = append(out, WebhookRule{mutates, operations, plainWord(group), plainWord(resource)})
				}
			}
		}
	}
	return out, nil
}

// plainWord replaces each character that no group, resource or operation has, so that the
// text of one rule never reads as several.
func plainWord(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._/*", c) {
			return c
		}
		return '?'
	}, s)
}
