package rbac

import (
	"errors"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrPermissionEscalation is the code for a package that requests, without approval, permissions that amount
// to control of the cluster.
var ErrPermissionEscalation = errcode.Code{
	Name: "PermissionEscalation", Class: errcode.Invalid, Approval: true,
	Cause: "The package requests permissions that amount to control of the whole cluster, such as running commands in every pod. They need approval, also in the first version of a package.",
	Fix:   "Review the permissions, then approve the revision with `xpkg approve` and the name of the package, or have the administrator allow them by name in the permission policy.",
}

// escalation is a kind of permission with which a runtime can obtain every other
// permission, or take control of the cluster.
type escalation struct {
	// Name is a short name for messages, unique in the list.
	Name string
	// Reason completes the sentence "With this permission, a runtime can …".
	Reason string

	targets []target
	verbs   []string
	// policyOnly escalations cannot be approved for a package: the policy has to list
	// the verb.
	policyOnly bool
	// allObjects reports whether the permission for single, named objects is not an escalation, except for
	// some names.
	allObjects bool
	except     []string
}

// target is a group with some of its resources. The resource "*" means all of them.
type target struct {
	group     string
	resources []string
}

const (
	groupAdmission    = "admissionregistration.k8s.io"
	groupAggregation  = "apiregistration.k8s.io"
	groupCertificates = "certificates.k8s.io"
	groupComposition  = "apiextensions.crossplane.io"
	groupDefinitions  = "apiextensions.k8s.io"
	groupFairness     = "flowcontrol.apiserver.k8s.io"
	groupOperation    = "ops.crossplane.io"
)

// packageGroups are the groups whose objects install packages: of this package manager in all generations, and of the
// package managers of other vendors.
var packageGroups = []string{
	"packages.crossplane.io", "pkg.crossplane.io", "stacks.crossplane.io", "pkg.ibm.crossplane.io", "pkg.upbound.io",
	"olm.operatorframework.io", "operators.coreos.com", "packaging.carvel.dev",
}

// secretCA is the Secret with the key of the CA that signs the certificates of runtimes.
const secretCA = "crossplane-root-ca"

var (
	verbsWrite = []string{"create", "patch", "update"}
	// verbsWriteDelete are the verbs for objects whose deletion removes a restriction or other users'
	// objects.
	verbsWriteDelete = append([]string{"delete", "deletecollection"}, verbsWrite...)
	// verbsChange are the verbs for objects whose creation is harmless.
	verbsChange = []string{"delete", "deletecollection", "patch", "update"}
)

// escalations lists the permissions that require the approval of a user or the permission policy.
var escalations = []escalation{
	{
		Name: "escalate", Reason: "write roles with permissions that it does not have",
		targets: []target{{rbacv1.GroupName, []string{"roles", "clusterroles"}}}, verbs: []string{verbEscalate}, policyOnly: true,
	},
	{
		Name: "bind", Reason: "bind itself to every role",
		targets: []target{{rbacv1.GroupName, []string{"roles", "clusterroles"}}}, verbs: []string{verbBind}, policyOnly: true,
	},
	{
		Name: "impersonate", Reason: "act as every user and ServiceAccount",
		targets: []target{
			{groupCore, []string{"users", "groups", "serviceaccounts"}},
			{"authentication.k8s.io", []string{"uids", "userextras"}},
		},
		verbs: []string{verbImpersonate}, policyOnly: true,
	},
	{
		Name: "write roles", Reason: "grant its permissions to other identities, and withdraw theirs",
		targets: []target{
			{rbacv1.GroupName, []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}},
			{"authorization.openshift.io", []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}},
		},
		verbs: verbsWriteDelete,
	},
	{
		Name: "issue tokens", Reason: "get a token of every ServiceAccount",
		targets: []target{{groupCore, []string{"serviceaccounts/token"}}}, verbs: []string{"create"},
	},
	{
		Name: "read all Secrets", Reason: "read the credentials of all other workloads",
		targets: []target{{groupCore, []string{"secrets"}}}, verbs: []string{"get", "list", "watch"}, allObjects: true, except: []string{secretCA},
	},
	{
		// A token controller fills a Secret of the type kubernetes.io/service-account-token.
		Name: "write all Secrets", Reason: "get a token of every ServiceAccount, and replace the credentials of other workloads",
		targets: []target{{groupCore, []string{"secrets"}}}, verbs: verbsWriteDelete, allObjects: true, except: []string{secretCA},
	},
	{
		Name: "write all ConfigMaps", Reason: "change the configuration of other workloads, and the permission policy",
		targets: []target{{groupCore, []string{"configmaps"}}}, verbs: verbsWriteDelete, allObjects: true,
	},
	{
		Name: "write all Leases", Reason: "stop other controllers, which hold Leases",
		targets: []target{{groupCoordination, []string{"leases"}}}, verbs: verbsWriteDelete, allObjects: true,
	},
	{
		Name: "run commands in pods", Reason: "run commands in every pod, with its ServiceAccount",
		// The API server accepts WebSocket connections with the verb get.
		targets: []target{{groupCore, []string{"pods/exec", "pods/attach"}}}, verbs: []string{"create", "get"},
	},
	{
		Name: "connect to pods", Reason: "connect to every port of every pod",
		targets: []target{{groupCore, []string{"pods/portforward", "pods/proxy", "services/proxy"}}}, verbs: append([]string{"delete", "get"}, verbsWrite...),
	},
	{
		Name: "add containers to pods", Reason: "run an image in every pod, with its ServiceAccount",
		targets: []target{{groupCore, []string{"pods/ephemeralcontainers"}}}, verbs: verbsWrite,
	},
	{
		Name: "use the kubelet API", Reason: "run commands in every container of a node",
		targets: []target{{groupCore, []string{"nodes/proxy"}}}, verbs: append([]string{"delete", "get"}, verbsWrite...),
	},
	{
		Name: "run workloads", Reason: "run an image with every ServiceAccount, also in namespaces such as kube-system, and stop other workloads",
		targets: []target{
			{groupCore, []string{"pods", "pods/eviction", "podtemplates", "replicationcontrollers", "replicationcontrollers/scale"}},
			{"apps", []string{
				"controllerrevisions", "daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale",
				"statefulsets", "statefulsets/scale",
			}},
			{"batch", []string{"cronjobs", "jobs"}},
		},
		verbs: verbsWriteDelete, allObjects: true,
	},
	{
		// Cloud providers give a workload the identity that an annotation of its ServiceAccount names.
		Name: "change ServiceAccounts", Reason: "change the cloud identity of other workloads, and delete the ServiceAccounts that they run with",
		targets: []target{{groupCore, []string{"serviceaccounts"}}}, verbs: verbsChange, allObjects: true,
	},
	{
		Name: "change quotas", Reason: "keep other workloads from running, and remove the limits of a namespace",
		targets: []target{{groupCore, []string{"limitranges", "resourcequotas", "resourcequotas/status"}}}, verbs: verbsWriteDelete, allObjects: true,
	},
	{
		Name: "change nodes", Reason: "attract the workloads of other nodes to a node, and delete nodes with everything that runs on them",
		targets: []target{{groupCore, []string{"nodes", "nodes/status"}}}, verbs: verbsWriteDelete,
	},
	{
		Name: "change namespaces", Reason: "delete namespaces with everything in them, and disable their pod security and admission by labels",
		targets: []target{
			{groupCore, []string{"namespaces", "namespaces/finalize", "namespaces/status"}},
			{"project.openshift.io", []string{"projects"}},
		},
		verbs: verbsChange,
	},
	{
		Name: "use files of nodes", Reason: "mount every folder of a node",
		targets: []target{{groupCore, []string{"persistentvolumes"}}}, verbs: verbsWriteDelete,
	},
	{
		Name: "write storage drivers", Reason: "provide the volumes of other workloads, with their tokens and data",
		targets: []target{{"storage.k8s.io", []string{"csidrivers", "csinodes", "storageclasses", "volumeattachments"}}}, verbs: verbsWriteDelete,
	},
	{
		Name: "write classes of pods", Reason: "change the isolation and the priority of other workloads",
		targets: []target{{"node.k8s.io", []string{"runtimeclasses"}}, {"scheduling.k8s.io", []string{"priorityclasses"}}}, verbs: verbsWriteDelete,
	},
	{
		Name: "redirect Services", Reason: "receive the traffic of every Service",
		// A Service with an external IP, and the address in the status of another, also attract traffic.
		targets: []target{
			{groupCore, []string{"endpoints", "services", "services/status"}},
			{"discovery.k8s.io", []string{"endpointslices"}},
		},
		verbs: verbsWriteDelete, allObjects: true,
	},
	{
		Name: "change routes", Reason: "receive the traffic of every host name, and open or block the network of other workloads",
		targets: []target{
			{"networking.k8s.io", []string{"ingressclasses", "ingresses", "networkpolicies"}},
			{"route.openshift.io", []string{"routes", "routes/custom-host"}},
		},
		verbs: verbsWriteDelete, allObjects: true,
	},
	{
		Name: "limit requests", Reason: "keep the requests of other clients, also of administrators, from the API server",
		targets: []target{{groupFairness, []string{star}}}, verbs: verbsWriteDelete,
	},
	{
		Name: "write packages", Reason: "install packages, run them with every image, ServiceAccount and permission, and uninstall them",
		targets: everythingIn(packageGroups), verbs: verbsWriteDelete,
	},
	{
		Name: "write compositions", Reason: "create every object that Crossplane may create, and delete objects that it has created",
		targets: []target{
			{groupComposition, []string{
				"compositeresourcedefinitions", "compositionrevisions", "compositions",
				"managedresourceactivationpolicies", "managedresourcedefinitions",
			}},
			{groupOperation, []string{"cronoperations", "operations", "watchoperations"}},
		},
		verbs: verbsWriteDelete,
	},
	{
		// The controller creates the objects in the manifest, the chart or the repository with its own permissions.
		Name: "apply manifests", Reason: "create and change every object that provider-kubernetes, provider-helm or a GitOps controller may write",
		targets: []target{
			{"kubernetes.crossplane.io", []string{"objects"}}, {"kubernetes.m.crossplane.io", []string{"objects"}},
			{"helm.crossplane.io", []string{"releases"}}, {"helm.m.crossplane.io", []string{"releases"}},
			{"argoproj.io", []string{"applications", "applicationsets", "appprojects"}},
			{"helm.toolkit.fluxcd.io", []string{"helmreleases"}}, {"kustomize.toolkit.fluxcd.io", []string{"kustomizations"}},
			{"helm.cattle.io", []string{"helmchartconfigs", "helmcharts"}}, {"kappctrl.k14s.io", []string{"apps"}},
		},
		verbs: verbsWriteDelete, allObjects: true,
	},
	{
		Name: "write CRDs", Reason: "read and change every custom resource with a conversion webhook, and delete it with its CRD",
		targets: []target{{groupDefinitions, []string{"customresourcedefinitions", "customresourcedefinitions/status"}}}, verbs: verbsWriteDelete,
	},
	{
		Name: "write admission control", Reason: "read, change and refuse all requests to the API server, and allow requests that a policy denies",
		targets: []target{{groupAdmission, []string{
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
			"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
		}}}, verbs: verbsWriteDelete,
	},
	{
		Name: "write APIServices", Reason: "serve API groups in place of the API server",
		targets: []target{{groupAggregation, []string{"apiservices", "apiservices/status"}}}, verbs: verbsWriteDelete,
	},
	{
		Name: "approve certificates", Reason: "obtain client certificates of every user",
		targets: []target{{groupCertificates, []string{"certificatesigningrequests/approval", "certificatesigningrequests/status"}}},
		verbs:   verbsWrite,
	},
	{
		Name: "sign certificates", Reason: "obtain client certificates of every user",
		targets: []target{{groupCertificates, []string{"signers"}}}, verbs: []string{"approve", "attest", "sign"},
	},
	{
		Name: "write trust bundles", Reason: "replace the CA certificates that other workloads trust",
		targets: []target{{groupCertificates, []string{"clustertrustbundles"}}}, verbs: verbsWriteDelete,
	},
	{
		Name: "use security context constraints", Reason: "run privileged pods on OpenShift",
		targets: []target{{"security.openshift.io", []string{"securitycontextconstraints"}}}, verbs: append([]string{"use"}, verbsWriteDelete...),
	},
	{
		Name: "write OpenShift identities", Reason: "get a token of every user of OpenShift, and add users to every group",
		targets: []target{{"oauth.openshift.io", []string{star}}, {"user.openshift.io", []string{star}}}, verbs: verbsWriteDelete,
	},
	{
		Name: "configure OpenShift", Reason: "change the files of all nodes and the control plane of OpenShift",
		targets: []target{
			{"config.openshift.io", []string{star}}, {"machineconfiguration.openshift.io", []string{star}}, {"operator.openshift.io", []string{star}},
		},
		verbs: verbsWriteDelete,
	},
}

// everythingIn returns the targets for all resources of some groups.
func everythingIn(groups []string) []target {
	out := make([]target, len(groups))
	for i, group := range groups {
		out[i] = target{group, []string{star}}
	}
	return out
}

// matches reports whether a grant includes the escalation, or a part of it.
func (e escalation) matches(g grant) bool {
	if g.url != "" || e.allObjects && g.name != "" && !slices.Contains(e.except, g.name) || g.verb != star && !slices.Contains(e.verbs, g.verb) {
		return false
	}
	return slices.ContainsFunc(e.targets, func(t target) bool {
		return (g.group == star || g.group == t.group) && slices.ContainsFunc(t.resources, func(r string) bool {
			return r == star || resourceCovers(g.resource, r)
		})
	})
}

// allowedBy reports whether a rule of an allow list names the permission: its group and,
// unless all resources of the group escalate, its resource.
func (e escalation) allowedBy(allow []Rule, g grant) bool {
	whole := slices.ContainsFunc(e.targets, func(t target) bool { return t.group == g.group && slices.Contains(t.resources, star) })
	return slices.ContainsFunc(allow, func(r Rule) bool {
		return slices.Contains(r.APIGroups, g.group) && (whole || g.resource != star && slices.Contains(r.Resources, g.resource)) && r.covers(g)
	})
}

// Escalating returns the requested permissions of a runtime that need approval:
// permissions that amount to control of the cluster, unless the allow list names them,
// every package of the kind gets them, or the runtime has them already, cluster-wide or in
// its namespace.
func Escalating(allow []Rule, everywhere, within []rbacv1.PolicyRule, in Input) []rbacv1.PolicyRule {
	if len(in.Requests) == 0 || in.Kind == Configuration {
		return nil
	}
	usual := in
	usual.Requests = nil
	types := union(in.Defined, in.Family)
	if in.Kind != Provider {
		types = nil
	}
	usualEverywhere, usualWithin := usual.system(types)
	wantEverywhere, wantWithin := in.requested()
	haveEverywhere := slices.Concat(everywhere, usualEverywhere)
	added := slices.Concat(
		Missing(haveEverywhere, wantEverywhere),
		Missing(slices.Concat(haveEverywhere, within, usualWithin), wantWithin),
	)
	var out []rbacv1.PolicyRule
	budget := maxGrants
	for _, rule := range added {
		n := count(rule, budget)
		if n > budget {
			out = append(out, rule)
			continue
		}
		budget -= n
		for _, g := range grants(rule) {
			if slices.ContainsFunc(escalations, func(e escalation) bool { return e.matches(g) && !e.policyOnly && !e.allowedBy(allow, g) }) {
				out = append(out, grantRule(g))
			}
		}
	}
	return canonical(out)
}

func grantRule(g grant) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{APIGroups: []string{g.group}, Resources: []string{g.resource}, Verbs: []string{g.verb}}
	if g.name != "" {
		rule.ResourceNames = []string{g.name}
	}
	return rule
}

// escalationsOf returns the escalations that a rule includes, in the order of
// the list.
func escalationsOf(rule rbacv1.PolicyRule) []escalation {
	if count(rule, maxGrants) > maxGrants {
		return slices.Clone(escalations)
	}
	all := grants(rule)
	return slices.DeleteFunc(slices.Clone(escalations), func(e escalation) bool { return !slices.ContainsFunc(all, e.matches) })
}

// Escalates reports whether a rule includes a permission that amounts to control of the cluster.
func Escalates(rule rbacv1.PolicyRule) bool { return len(escalationsOf(rule)) > 0 }

// DescribeEscalation describes a rule with the escalations that it includes.
func DescribeEscalation(rule rbacv1.PolicyRule) string {
	var reasons []string
	for _, e := range escalationsOf(rule) {
		reasons = append(reasons, e.Reason)
	}
	if len(reasons) == 0 {
		return Describe(rule)
	}
	return Describe(rule) + ", to " + strings.Join(reasons, ", or ")
}

// EscalationError returns an error with the code PermissionEscalation for rules that
// [Escalating] returns, with the command that approves them; nil if there are none.
func EscalationError(rules []rbacv1.PolicyRule, approval string) error {
	if len(rules) == 0 {
		return nil
	}
	lines := make([]string, len(rules))
	for i, rule := range rules {
		lines[i] = DescribeEscalation(rule)
	}
	return ErrPermissionEscalation.New(errors.New("it requests "+list(lines)), "the package requests permissions that amount to control of the cluster").
		WithDo("Review the permissions and approve them with %s, or have the administrator allow them by name in the permission policy.", approval)
}
