package rbac

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

func ruleFor(group, resource, verb string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names,
	}
}

func TestEscalatingNeedsNoApprovalTwice(t *testing.T) {
	exec := ruleFor("", "pods/exec", "create")
	get := ruleFor("", "pods", "get")
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}}
	for name, tc := range map[string]struct {
		allow              []Rule
		everywhere, within []rbacv1.PolicyRule
		in                 Input
		want               []rbacv1.PolicyRule
	}{
		"only the part that escalates": {
			in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{get, exec}}, want: []rbacv1.PolicyRule{exec},
		},
		"held in the cluster": {everywhere: []rbacv1.PolicyRule{exec}, in: Input{
			Kind: Function, Requests: []rbacv1.PolicyRule{get, exec},
		}},
		"held in the namespace": {
			within: []rbacv1.PolicyRule{exec},
			in:     Input{Kind: Function, Requests: []rbacv1.PolicyRule{exec}, Namespaced: true, Namespace: "here"},
		},
		"held in the namespace, requested in the cluster": {
			within: []rbacv1.PolicyRule{exec}, in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{exec}},
			want: []rbacv1.PolicyRule{exec},
		},
		"what every provider has": {in: Input{Kind: Provider, Requests: []rbacv1.PolicyRule{secrets}}},
		"more than a reduced provider": {in: Input{
			Kind: Provider, Requests: []rbacv1.PolicyRule{secrets}, Needs: minimal,
		}, want: []rbacv1.PolicyRule{secrets}},
		"a Function": {in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{secrets}}, want: []rbacv1.PolicyRule{secrets}},
		"a Function that elects a leader": {
			in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{
				ruleFor("coordination.k8s.io", "leases", "update"), ruleFor("coordination.k8s.io", "leases", "get"),
			}},
			want: []rbacv1.PolicyRule{ruleFor("coordination.k8s.io", "leases", "update")},
		},
		"one Lease, which may be another controller's": {
			in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{
				ruleFor("coordination.k8s.io", "leases", "update", "mine"),
			}},
			want: []rbacv1.PolicyRule{ruleFor("coordination.k8s.io", "leases", "update", "mine")},
		},
		"its own manifests": {in: Input{
			Kind: Provider, Defined: []schema.GroupResource{{Group: "kubernetes.crossplane.io", Resource: "objects"}},
			Requests: []rbacv1.PolicyRule{ruleFor("kubernetes.crossplane.io", "objects", "deletecollection")},
		}},
		"provider-kubernetes": {in: Input{
			Kind: Provider, Defined: []schema.GroupResource{{Group: "kubernetes.crossplane.io", Resource: "objects"}},
			Requests: []rbacv1.PolicyRule{ruleFor("kubernetes.crossplane.io", "objects", "update")},
		}},
		"harmless": {in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{
			ruleFor("", "services", "list"), ruleFor("", "serviceaccounts", "create"), ruleFor("", "namespaces", "create"),
			ruleFor("", "pods/status", "get"),
			ruleFor("apps", "deployments/scale", "get"), ruleFor("apps", "deployments/finalizers", "update"),
			ruleFor("project.openshift.io", "projectrequests", "create"),
		}}},
		"one Secret": {in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{
			ruleFor("", "secrets", "get", "mine"),
		}}},
		"named by the policy": {allow: []Rule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}}}, in: Input{
			Kind: Function, Requests: []rbacv1.PolicyRule{exec},
		}},
		"named with its object": {
			allow: []Rule{{APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"mine"}}},
			in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"},
				ResourceNames: []string{"mine", "other"},
			}}},
			want: []rbacv1.PolicyRule{ruleFor("", "pods", "patch", "other")},
		},
		"covered by a wildcard": {
			allow: []Rule{{APIGroups: []string{"*"}}}, in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{exec}},
			want: []rbacv1.PolicyRule{exec},
		},
		"another verb is named": {
			allow: []Rule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"get"}}},
			in:    Input{Kind: Function, Requests: []rbacv1.PolicyRule{exec}}, want: []rbacv1.PolicyRule{exec},
		},
		"a group named by the policy": {allow: []Rule{{APIGroups: []string{"pkg.crossplane.io"}}}, in: Input{
			Kind: Function, Requests: []rbacv1.PolicyRule{ruleFor("pkg.crossplane.io", "*", "*")},
		}},
		"its own resources": {in: Input{
			Kind: Provider, Defined: []schema.GroupResource{{Group: "example.org", Resource: "pods"}},
			Requests: []rbacv1.PolicyRule{ruleFor("example.org", "pods", "*")},
		}},
		"a Configuration has no runtime": {in: Input{Kind: Configuration, Requests: []rbacv1.PolicyRule{exec}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Escalating(tc.allow, tc.everywhere, tc.within, tc.in)); diff != "" {
				t.Errorf("rules that need approval (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEscalationErrorNamesPermissionAndReason(t *testing.T) {
	err := EscalationError([]rbacv1.PolicyRule{ruleFor("", "pods/exec", "create")}, "`xpkg approve provider/x`")
	for _, part := range []string{"create pods/exec in the core group", "run commands in every pod"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %q", err, part)
		}
	}
	if err := EscalationError(nil, ""); err != nil {
		t.Errorf("without rules: %v", err)
	}
}

// Every group of the packages of this package manager is one whose objects install packages: a group that is added to
// the API has to be in the list.
func TestEveryGroupOfPackagesEscalates(t *testing.T) {
	for _, group := range []string{v1.Group, packagesv1alpha1.Group, packagesv1alpha1.EarlierGroup} {
		if !Escalates(ruleFor(group, "*", "create")) {
			t.Errorf("the permission to create objects of %s needs no consent", group)
		}
	}
}
