package rbac

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

func ruleFor(group, resource, verb string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
}

// Each entry of the list is recognized in each of its spellings, and needs the approval of
// a person or the policy.
//
// hardening: E12
func TestEachEscalationNeedsConsent(t *testing.T) {
	examples := map[string][]rbacv1.PolicyRule{
		"escalate":                         {ruleFor("rbac.authorization.k8s.io", "roles", "escalate"), ruleFor("rbac.authorization.k8s.io", "*", "*")},
		"bind":                             {ruleFor("rbac.authorization.k8s.io", "clusterroles", "bind", "admin"), ruleFor("*", "clusterroles", "*")},
		"impersonate":                      {ruleFor("", "serviceaccounts", "impersonate"), ruleFor("authentication.k8s.io", "userextras", "*")},
		"write roles":                      {ruleFor("rbac.authorization.k8s.io", "clusterroles", "delete", "x"), ruleFor("rbac.authorization.k8s.io", "roles", "update"), ruleFor("rbac.authorization.k8s.io", "clusterrolebindings", "create"), ruleFor("rbac.authorization.k8s.io", "rolebindings", "patch", "x"), ruleFor("authorization.openshift.io", "clusterrolebindings", "create")},
		"issue tokens":                     {ruleFor("", "serviceaccounts/token", "create"), ruleFor("", "*/token", "create"), ruleFor("*", "serviceaccounts/token", "create", "x")},
		"read all Secrets":                 {ruleFor("", "secrets", "list"), ruleFor("", "secrets", "get"), ruleFor("", "*", "watch"), ruleFor("*", "secrets", "*"), ruleFor("", "secrets", "get", "crossplane-root-ca")},
		"write all Secrets":                {ruleFor("", "secrets", "create"), ruleFor("", "secrets", "patch"), ruleFor("", "*", "deletecollection"), ruleFor("*", "secrets", "*"), ruleFor("", "secrets", "update", "crossplane-root-ca")},
		"write all ConfigMaps":             {ruleFor("", "configmaps", "create"), ruleFor("", "configmaps", "update"), ruleFor("", "*", "delete"), ruleFor("*", "configmaps", "*")},
		"write all Leases":                 {ruleFor("coordination.k8s.io", "leases", "update"), ruleFor("coordination.k8s.io", "*", "patch"), ruleFor("*", "leases", "deletecollection")},
		"run commands in pods":             {ruleFor("", "pods/exec", "create"), ruleFor("", "pods/exec", "get"), ruleFor("", "pods/attach", "create", "x"), ruleFor("", "*/exec", "*")},
		"connect to pods":                  {ruleFor("", "pods/portforward", "create"), ruleFor("", "services/proxy", "get"), ruleFor("", "pods/proxy", "update")},
		"add containers to pods":           {ruleFor("", "pods/ephemeralcontainers", "patch")},
		"use the kubelet API":              {ruleFor("", "nodes/proxy", "get"), ruleFor("", "nodes/proxy", "create", "node-1"), ruleFor("", "*/proxy", "get")},
		"run workloads":                    {ruleFor("", "pods", "create"), ruleFor("apps", "deployments", "update"), ruleFor("batch", "cronjobs", "*"), ruleFor("apps", "*", "patch"), ruleFor("", "pods", "delete"), ruleFor("apps", "daemonsets", "deletecollection"), ruleFor("", "pods/eviction", "create"), ruleFor("apps", "*/scale", "update")},
		"change ServiceAccounts":           {ruleFor("", "serviceaccounts", "delete"), ruleFor("", "serviceaccounts", "patch"), ruleFor("", "*", "deletecollection")},
		"change quotas":                    {ruleFor("", "resourcequotas", "create"), ruleFor("", "resourcequotas", "delete"), ruleFor("", "limitranges", "update"), ruleFor("", "resourcequotas/status", "patch")},
		"change nodes":                     {ruleFor("", "nodes", "patch"), ruleFor("", "nodes", "delete", "x"), ruleFor("", "nodes/status", "update"), ruleFor("", "nodes", "create")},
		"change namespaces":                {ruleFor("", "namespaces", "delete"), ruleFor("", "namespaces", "patch", "x"), ruleFor("", "namespaces/finalize", "update"), ruleFor("project.openshift.io", "projects", "delete", "x")},
		"use files of nodes":               {ruleFor("", "persistentvolumes", "create"), ruleFor("", "persistentvolumes", "delete")},
		"write storage drivers":            {ruleFor("storage.k8s.io", "storageclasses", "create"), ruleFor("storage.k8s.io", "csidrivers", "patch"), ruleFor("storage.k8s.io", "*", "delete")},
		"write classes of pods":            {ruleFor("node.k8s.io", "runtimeclasses", "create"), ruleFor("scheduling.k8s.io", "priorityclasses", "patch", "x")},
		"redirect Services":                {ruleFor("", "endpoints", "update"), ruleFor("discovery.k8s.io", "endpointslices", "create"), ruleFor("", "services", "create"), ruleFor("", "services", "patch"), ruleFor("", "services/status", "update"), ruleFor("discovery.k8s.io", "endpointslices", "delete")},
		"change routes":                    {ruleFor("networking.k8s.io", "ingresses", "create"), ruleFor("networking.k8s.io", "networkpolicies", "delete"), ruleFor("networking.k8s.io", "*", "*"), ruleFor("route.openshift.io", "routes", "patch")},
		"limit requests":                   {ruleFor("flowcontrol.apiserver.k8s.io", "flowschemas", "create"), ruleFor("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "delete", "x"), ruleFor("flowcontrol.apiserver.k8s.io", "flowschemas/status", "patch")},
		"write packages":                   {ruleFor("pkg.crossplane.io", "providers", "create"), ruleFor("pkg.crossplane.io", "deploymentruntimeconfigs", "patch", "default"), ruleFor("pkg.crossplane.io", "*", "*"), ruleFor("pkg.crossplane.io", "providers", "delete"), ruleFor("packages.crossplane.io", "*", "*"), ruleFor("packages.crossplane.io", "clusterpackageinstalls", "delete", "x"), ruleFor("packages.crossplane.io", "packageinstalls/status", "patch"), ruleFor("stacks.crossplane.io", "stackinstalls", "create"), ruleFor("pkg.ibm.crossplane.io", "providers", "update"), ruleFor("pkg.upbound.io", "controllers", "create"), ruleFor("operators.coreos.com", "subscriptions", "patch"), ruleFor("olm.operatorframework.io", "clusterextensions", "delete"), ruleFor("packaging.carvel.dev", "packageinstalls", "create")},
		"write compositions":               {ruleFor("apiextensions.crossplane.io", "compositions", "create"), ruleFor("apiextensions.crossplane.io", "*", "*"), ruleFor("ops.crossplane.io", "operations", "patch", "x")},
		"apply manifests":                  {ruleFor("kubernetes.crossplane.io", "objects", "create"), ruleFor("kubernetes.m.crossplane.io", "objects", "patch"), ruleFor("helm.crossplane.io", "releases", "update"), ruleFor("helm.m.crossplane.io", "*", "*"), ruleFor("argoproj.io", "applications", "create"), ruleFor("helm.toolkit.fluxcd.io", "*", "patch"), ruleFor("kustomize.toolkit.fluxcd.io", "kustomizations", "delete"), ruleFor("helm.cattle.io", "helmcharts", "create"), ruleFor("kappctrl.k14s.io", "apps", "update")},
		"write CRDs":                       {ruleFor("apiextensions.k8s.io", "customresourcedefinitions", "update"), ruleFor("apiextensions.k8s.io", "customresourcedefinitions", "delete", "x"), ruleFor("apiextensions.k8s.io", "customresourcedefinitions/status", "update")},
		"write admission control":          {ruleFor("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "create"), ruleFor("admissionregistration.k8s.io", "validatingadmissionpolicies", "update"), ruleFor("admissionregistration.k8s.io", "validatingadmissionpolicybindings", "delete"), ruleFor("admissionregistration.k8s.io", "validatingwebhookconfigurations", "deletecollection")},
		"write APIServices":                {ruleFor("apiregistration.k8s.io", "apiservices", "create"), ruleFor("apiregistration.k8s.io", "apiservices", "delete", "x")},
		"approve certificates":             {ruleFor("certificates.k8s.io", "certificatesigningrequests/approval", "update")},
		"write trust bundles":              {ruleFor("certificates.k8s.io", "clustertrustbundles", "create")},
		"use security context constraints": {ruleFor("security.openshift.io", "securitycontextconstraints", "use", "privileged"), ruleFor("security.openshift.io", "securitycontextconstraints", "update"), ruleFor("security.openshift.io", "*", "*")},
		"write OpenShift identities":       {ruleFor("oauth.openshift.io", "oauthaccesstokens", "create"), ruleFor("oauth.openshift.io", "oauthclients", "patch", "x"), ruleFor("user.openshift.io", "groups", "update", "x"), ruleFor("user.openshift.io", "*", "*")},
		"configure OpenShift":              {ruleFor("machineconfiguration.openshift.io", "machineconfigs", "create"), ruleFor("config.openshift.io", "oauths", "patch", "cluster"), ruleFor("operator.openshift.io", "*", "*")},
		"sign certificates":                {ruleFor("certificates.k8s.io", "signers", "approve", "kubernetes.io/kube-apiserver-client")},
	}
	for _, e := range escalations {
		rules := examples[e.Name]
		if len(rules) == 0 {
			t.Errorf("%s: no example", e.Name)
		}
		for _, rule := range rules {
			if !slices.ContainsFunc(escalationsOf(rule), func(other escalation) bool { return other.Name == e.Name }) {
				t.Errorf("%s: %s is not recognized", e.Name, Describe(rule))
			}
			for _, in := range []Input{
				{Kind: Provider, Requests: []rbacv1.PolicyRule{rule}, Needs: minimal},
				{Kind: Function, Requests: []rbacv1.PolicyRule{rule}},
				{Kind: Function, Requests: []rbacv1.PolicyRule{rule}, Namespaced: true, Namespace: "here"},
			} {
				denied := Policy{}.Check(in.Requests)
				if waiting := Escalating(nil, nil, nil, in); denied == nil && len(waiting) == 0 {
					t.Errorf("%s: a %s gets %s without consent", e.Name, in.Kind, Describe(rule))
				}
			}
		}
	}
	if len(examples) != len(escalations) {
		t.Errorf("%d examples for %d escalations", len(examples), len(escalations))
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
		"only the part that escalates": {in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{get, exec}}, want: []rbacv1.PolicyRule{exec}},
		"held in the cluster":          {everywhere: []rbacv1.PolicyRule{exec}, in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{get, exec}}},
		"held in the namespace": {
			within: []rbacv1.PolicyRule{exec}, in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{exec}, Namespaced: true, Namespace: "here"},
		},
		"held in the namespace, requested in the cluster": {
			within: []rbacv1.PolicyRule{exec}, in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{exec}}, want: []rbacv1.PolicyRule{exec},
		},
		"what every provider has":      {in: Input{Kind: Provider, Requests: []rbacv1.PolicyRule{secrets}}},
		"more than a reduced provider": {in: Input{Kind: Provider, Requests: []rbacv1.PolicyRule{secrets}, Needs: minimal}, want: []rbacv1.PolicyRule{secrets}},
		"a Function":                   {in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{secrets}}, want: []rbacv1.PolicyRule{secrets}},
		"a Function that elects a leader": {
			in:   Input{Kind: Function, Requests: []rbacv1.PolicyRule{ruleFor("coordination.k8s.io", "leases", "update"), ruleFor("coordination.k8s.io", "leases", "get")}},
			want: []rbacv1.PolicyRule{ruleFor("coordination.k8s.io", "leases", "update")},
		},
		"one Lease":           {in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{ruleFor("coordination.k8s.io", "leases", "update", "mine")}}},
		"one ConfigMap":       {in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{ruleFor("", "configmaps", "update", "mine")}}},
		"one Service":         {in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{ruleFor("", "services", "update", "mine")}}},
		"provider-kubernetes": {in: Input{Kind: Provider, Defined: []schema.GroupResource{{Group: "kubernetes.crossplane.io", Resource: "objects"}}, Requests: []rbacv1.PolicyRule{ruleFor("kubernetes.crossplane.io", "objects", "update")}}},
		"harmless": {in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{
			ruleFor("", "services", "list"), ruleFor("", "serviceaccounts", "create"), ruleFor("", "namespaces", "create"), ruleFor("", "pods/status", "get"),
			ruleFor("apps", "deployments/scale", "get"), ruleFor("kubernetes.crossplane.io", "providerconfigs", "update"), ruleFor("project.openshift.io", "projectrequests", "create"),
		}}},
		"one Secret":                     {in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{ruleFor("", "secrets", "get", "mine")}}},
		"named by the policy":            {allow: []Rule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}}}, in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{exec}}},
		"covered by a wildcard":          {allow: []Rule{{APIGroups: []string{"*"}}}, in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{exec}}, want: []rbacv1.PolicyRule{exec}},
		"another verb is named":          {allow: []Rule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"get"}}}, in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{exec}}, want: []rbacv1.PolicyRule{exec}},
		"a group named by the policy":    {allow: []Rule{{APIGroups: []string{"pkg.crossplane.io"}}}, in: Input{Kind: Function, Requests: []rbacv1.PolicyRule{ruleFor("pkg.crossplane.io", "*", "*")}}},
		"its own resources":              {in: Input{Kind: Provider, Defined: []schema.GroupResource{{Group: "example.org", Resource: "pods"}}, Requests: []rbacv1.PolicyRule{ruleFor("example.org", "pods", "*")}}},
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

// Every group of the packages of this package manager is one whose objects install packages: a group that is added to the API
// has to be in the list.
func TestEveryGroupOfPackagesEscalates(t *testing.T) {
	for _, group := range []string{v1.Group, packagesv1alpha1.Group, packagesv1alpha1.EarlierGroup} {
		if !Escalates(ruleFor(group, "*", "create")) {
			t.Errorf("the permission to create objects of %s needs no consent", group)
		}
	}
}

// The guide explains each escalation that can be approved.
func TestGuideListsEachEscalation(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range escalations {
		if !e.policyOnly && !strings.Contains(string(guide), "| "+e.Reason+" |") {
			t.Errorf("docs/guides/permissions.md does not explain %q: %s", e.Name, e.Reason)
		}
	}
}
