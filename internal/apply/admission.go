package apply

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// admissionPaths are the paths of the configurations that can deny a write. A version that the API server does not
// serve has none.
var admissionPaths = []string{
	"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
	"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
	"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
}

// CheckAdmitted returns the error of a dry run of the changes of a plan, so that a plan of which one change is denied
// writes nothing. It makes no calls for a single change, which is written or not. It makes no dry run if no admission
// policy or webhook applies to the groups of the objects, unless the last attempt was denied: the API server applies a
// policy for a moment after its deletion. The write itself shows what a webhook denies that does not support dry runs.
func (c *Cluster) CheckAdmitted(ctx context.Context, p plan.Plan, content Content, wasDenied bool) error {
	if len(p.Changes) < 2 || len(p.Refusals) > 0 {
		return nil
	}
	if !wasDenied {
		groups := map[string]bool{"*": true}
		for _, ch := range p.Changes {
			group, _, _ := strings.Cut(ch.Ref.APIVersion, "/")
			groups[group] = true
		}
		if concerned, err := c.mayDeny(ctx, groups); err != nil || !concerned {
			return err
		}
	}
	if _, err := c.DryRun().Run(ctx, p, content); !NoDryRun(err) {
		return err
	}
	return nil
}

// mayDeny reports whether an admission policy or webhook applies to one of some API groups. It returns true if the
// configurations cannot be read.
func (c *Cluster) mayDeny(ctx context.Context, groups map[string]bool) (bool, error) {
	for _, path := range admissionPaths {
		raw, err := c.get(ctx, runtime.ContentTypeJSON, nil, path)
		if notServed(err) {
			continue
		}
		var list admissionList
		if err == nil {
			err = json.Unmarshal(raw, &list)
		}
		if err != nil {
			err = classify(err, "list the admission policies and webhooks")
			if errors.Is(err, ErrForbidden) {
				return true, nil
			}
			return false, err
		}
		if list.concerns(groups) {
			return true, nil
		}
	}
	return false, nil
}

// admissionList is the part of a list of policies or webhook configurations that selects objects.
type admissionList struct {
	Items []struct {
		Spec struct {
			MatchConstraints struct {
				ResourceRules []admissionRule `json:"resourceRules"`
			} `json:"matchConstraints"`
		} `json:"spec"`
		Webhooks []struct {
			Rules []admissionRule `json:"rules"`
		} `json:"webhooks"`
	} `json:"items"`
}

type admissionRule struct {
	APIGroups  []string `json:"apiGroups"`
	Operations []string `json:"operations"`
}

// concerns reports whether a rule selects writes in one of some groups.
func (l admissionList) concerns(groups map[string]bool) bool {
	writes := map[string]bool{"*": true, "CREATE": true, "UPDATE": true}
	selects := func(r admissionRule) bool {
		return slices.ContainsFunc(r.APIGroups, func(group string) bool { return groups[group] }) &&
			slices.ContainsFunc(r.Operations, func(operation string) bool { return writes[operation] })
	}
	for _, item := range l.Items {
		rules := slices.Clone(item.Spec.MatchConstraints.ResourceRules)
		for _, hook := range item.Webhooks {
			rules = append(rules, hook.Rules...)
		}
		if slices.ContainsFunc(rules, selects) {
			return true
		}
	}
	return false
}

// isGenerated reports whether xpkg generates an object. Other objects come from a package.
func isGenerated(ref plan.Ref) bool { return strings.HasPrefix(ref.APIVersion, rbacv1.GroupName+"/") }

// checkMetadata fails before the first write of a plan if the API server would refuse the name, the labels or the
// annotations of one of its objects.
func checkMetadata(changes []plan.Change) error {
	for _, ch := range changes {
		code, name := ErrRejected, validation.IsDNS1123Subdomain
		if isGenerated(ch.Ref) {
			code, name = ErrGenerated, content.IsPathSegmentName
		}
		problems := check.Labels(ch.Labels, ch.Annotations)
		for _, message := range name(ch.Ref.Name) {
			problems = append(problems, check.Problem{Path: "metadata.name", Message: message})
		}
		if len(problems) > 0 {
			return code.New(nil, "%s %s %s: %s: %s", ch.Action, ch.Ref.Kind, ch.Ref.Name, problems[0].Path, problems[0].Message)
		}
	}
	return nil
}
