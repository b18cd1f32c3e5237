package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	groupAdmission    = "admissionregistration.k8s.io"
	groupAggregation  = "apiregistration.k8s.io"
	groupCertificates = "certificates.k8s.io"
	groupComposition  = "apiextensions.crossplane.io"
	groupDefinitions  = "apiextensions.k8s.io"
	groupFairness     = "flowcontrol.apiserver.k8s.io"
	groupOperation    = "ops.crossplane.io"
	groupProtection   = "protection.crossplane.io"
)

// escalation is a kind of permission with which a runtime can obtain every other
// permission, or take control of the cluster.
type escalation struct {
	// reason completes the sentence "With this permission, a runtime can …".
	reason  string
	targets []target
	// urls are URL patterns, such as "/logs*".
	urls  []string
	verbs []string
	// policyOnly escalations cannot be approved for a package: the policy has to list
	// the verb.
	policyOnly bool
	// boundedByName are the verbs with which the permission for single, named objects is not an escalation,
	// except for names that match a pattern of unbounded. A name says nothing about whose object it is, so it
	// bounds no write: a patch by server-side apply also creates the named object.
	boundedByName []string
	unbounded     []string
}

// target is a group with some of its resources. The group "*.example.org" means every group with that suffix, and
// the resource "*" all resources. A resource includes its subresources, except those that other targets list.
type target struct {
	group     string
	resources []string
}

// packageGroups are the groups whose objects install packages: of this package manager in all generations, and of the
// package managers of other vendors.
var packageGroups = []string{
	"packages.crossplane.io", "pkg.crossplane.io", "stacks.crossplane.io", "xpkg.dev", "pkg.ibm.crossplane.io",
	"pkg.upbound.io",
	"olm.operatorframework.io", "operators.coreos.com", "packaging.carvel.dev",
}

var (
	verbsWrite = []string{"create", "patch", "update"}
	// verbsWriteDelete are the verbs for objects whose deletion removes a restriction or other users'
	// objects.
	verbsWriteDelete = append([]string{"delete", "deletecollection"}, verbsWrite...)
	// verbsChange are the verbs for objects whose creation is harmless.
	verbsChange = []string{"delete", "deletecollection", "patch", "update"}
	// verbsConnect are the verbs for subresources that connect to a server. The API server accepts WebSocket
	// connections with the verb get.
	verbsConnect = append([]string{"get"}, verbsWriteDelete...)
)

// escalations lists the permissions that require the approval of a user or the permission policy.
var escalations = []escalation{
	{
		reason:  "write roles with permissions that it does not have",
		targets: []target{{rbacv1.GroupName, []string{"roles", "clusterroles"}}}, verbs: []string{verbEscalate},
		policyOnly: true,
	},
	{
		reason:  "bind itself to every role",
		targets: []target{{rbacv1.GroupName, []string{"roles", "clusterroles"}}}, verbs: []string{verbBind}, policyOnly: true,
	},
	{
		reason: "act as every user and ServiceAccount",
		targets: []target{
			{groupCore, []string{"users", "groups", "serviceaccounts"}},
			{"authentication.k8s.io", []string{"uids", "userextras"}},
		},
		verbs: []string{verbImpersonate}, policyOnly: true,
	},
	{
		// Controllers write the roles and bindings that the objects of the last groups name.
		reason: "grant its permissions to other identities, and withdraw theirs",
		targets: append([]target{
			{rbacv1.GroupName, []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}},
			{"authorization.openshift.io", []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}},
		}, everythingIn("capsule.clastix.io", "hnc.x-k8s.io", "management.cattle.io", "rbacmanager.reactiveops.io")...),
		verbs: verbsWriteDelete,
	},
	{
		reason:  "get a token of every ServiceAccount",
		targets: []target{{groupCore, []string{"serviceaccounts/token"}}}, verbs: []string{"create"},
	},
	{
		reason:  "read the credentials of all other workloads",
		targets: []target{{groupCore, []string{"secrets"}}}, verbs: verbsView,
		// The name of a Secret is a bound that a user can review. The keys of the CA and of the certificates of
		// runtimes are the exception.
		boundedByName: verbsView, unbounded: []string{"crossplane-root-ca", "*-tls-client", "*-tls-server"},
	},
	{
		// A token controller fills a Secret of the type kubernetes.io/service-account-token.
		reason:  "get a token of every ServiceAccount, and replace the credentials of other workloads",
		targets: []target{{groupCore, []string{"secrets"}}}, verbs: verbsWriteDelete,
	},
	{
		reason:  "change the configuration of other workloads, and the permission policy",
		targets: []target{{groupCore, []string{"configmaps"}}}, verbs: verbsWriteDelete,
	},
	{
		reason:  "stop other controllers, which hold Leases",
		targets: []target{{groupCoordination, []string{"leasecandidates", "leases"}}}, verbs: verbsWriteDelete,
	},
	{
		reason:  "run commands in every pod, with its ServiceAccount",
		targets: []target{{groupCore, []string{"pods/attach", "pods/exec"}}}, verbs: verbsConnect,
	},
	{
		reason:  "connect to every port of every pod",
		targets: []target{{groupCore, []string{"pods/portforward", "pods/proxy", "services/proxy"}}}, verbs: verbsConnect,
	},
	{
		reason:  "run an image in every pod, with its ServiceAccount",
		targets: []target{{groupCore, []string{"pods/ephemeralcontainers"}}}, verbs: verbsWrite,
	},
	{
		reason:  "run commands in every container of a node, and copy its memory",
		targets: []target{{groupCore, []string{"nodes/checkpoint", "nodes/proxy"}}}, verbs: verbsConnect,
	},
	{
		reason:  "read the logs of nodes and of the control plane with the secrets in them, and determine what is logged",
		targets: []target{{groupCore, []string{"nodes/log"}}}, urls: []string{"/debug*", "/logs*"}, verbs: []string{star},
	},
	{
		reason: "run an image with every ServiceAccount, also in namespaces such as kube-system, and stop other workloads",
		targets: []target{
			{groupCore, []string{"bindings", "pods", "podtemplates", "replicationcontrollers"}},
			{"apps", []string{"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"}},
			{"batch", []string{"cronjobs", "jobs"}},
			{"apps.openshift.io", []string{"deploymentconfigs"}},
		},
		verbs: verbsWriteDelete,
	},
	{
		// The controller runs the program, image or playbook in the object with its own permissions, or with a
		// ServiceAccount that the object names.
		reason: "run programs with the permissions of the controllers that execute them",
		targets: append([]target{
			{"monitoring.coreos.com", []string{"alertmanagers", "prometheusagents", "prometheuses", "thanosrulers"}},
		}, everythingIn(
			"actions.github.com", "actions.summerwind.dev", "ansible.crossplane.io", "ansible.m.crossplane.io",
			"app.terraform.io",
			"apps.kruise.io", "auto.pulumi.com", "batch.volcano.sh", "build.openshift.io", "camel.apache.org", "chaos-mesh.org",
			"controller.devfile.io", "eventing.knative.dev", "flink.apache.org", "infra.contrib.fluxcd.io", "jobset.x-k8s.io",
			"keda.sh",
			"kpack.io", "kubeflow.org", "kubevirt.io", "*.kubevirt.io", "leaderworkerset.x-k8s.io", "litmuschaos.io",
			"machinelearning.seldon.io", "nvidia.com", "opentelemetry.io", "opentofu.upbound.io", "opentofu.m.upbound.io",
			"operator.knative.dev", "prow.k8s.io", "pulumi.com", "ray.io", "serving.knative.dev", "serving.kserve.io",
			"shipwright.io",
			"sources.knative.dev", "sparkoperator.k8s.io", "tekton.dev", "*.tekton.dev", "tf.crossplane.io", "tf.upbound.io",
			"tf.m.upbound.io", "upgrade.cattle.io", "workspace.devfile.io",
		)...),
		verbs: verbsWriteDelete,
	},
	{
		// The controller creates the objects in the manifest, the chart, the repository or the backup with its own
		// permissions. The groups include the configuration of the identity and of the source.
		reason: "create and change every object that the controllers of these manifests may write, such as provider-kubernetes or Argo CD",
		targets: everythingIn(
			"argocd.crossplane.io", "*.argocd.crossplane.io", "argoproj.io", "carto.run", "catalog.cattle.io", "core.oam.dev",
			"fleet.cattle.io", "fluxcd.controlplane.io",
			"gitops.kluctl.io", "helm.cattle.io", "helm.crossplane.io", "helm.m.crossplane.io", "http.crossplane.io",
			"http.m.crossplane.io",
			"k3s.cattle.io", "kappctrl.k14s.io", "kro.run", "kubernetes.crossplane.io", "kubernetes.m.crossplane.io",
			"metacontroller.k8s.io", "*.open-cluster-management.io", "policy.karmada.io", "templates.kluctl.io",
			"*.toolkit.fluxcd.io",
			"velero.io", "work.karmada.io",
		),
		verbs: verbsWriteDelete,
	},
	{
		reason: "scale and evict other workloads, and keep nodes from being drained",
		targets: []target{
			{"autoscaling", []string{"horizontalpodautoscalers"}}, {"autoscaling.k8s.io", []string{"verticalpodautoscalers"}},
			{"lifecycle.k8s.io", []string{"evictionrequests", "evictions"}}, {"policy", []string{"poddisruptionbudgets"}},
		},
		verbs: verbsWriteDelete,
	},
	{
		// Cloud providers give a workload the identity that an annotation of its ServiceAccount names.
		reason:  "change the cloud identity of other workloads, and delete the ServiceAccounts that they run with",
		targets: []target{{groupCore, []string{"serviceaccounts"}}}, verbs: verbsChange,
	},
	{
		reason:  "keep other workloads from running, and remove the limits of a namespace",
		targets: []target{{groupCore, []string{"limitranges", "resourcequotas"}}}, verbs: verbsWriteDelete,
	},
	{
		reason:  "attract the workloads of other nodes to a node, and delete nodes with everything that runs on them",
		targets: []target{{groupCore, []string{"nodes"}}}, verbs: verbsWriteDelete,
	},
	{
		reason: "run commands on the machines of clusters, and delete them",
		targets: everythingIn("cluster.x-k8s.io",
			"*.cluster.x-k8s.io", "karpenter.k8s.aws", "karpenter.sh", "machine.openshift.io",
			"provisioning.cattle.io"),
		verbs: verbsWriteDelete,
	},
	{
		reason: "delete namespaces with everything in them, and disable their pod security and admission by labels",
		targets: []target{
			{groupCore, []string{"namespaces"}},
			{"project.openshift.io", []string{"projects"}},
		},
		verbs: verbsChange,
	},
	{
		reason:  "delete the data of other workloads",
		targets: []target{{groupCore, []string{"persistentvolumeclaims"}}, {"snapshot.storage.k8s.io", []string{star}}},
		verbs:   verbsChange,
	},
	{
		reason:  "mount every folder of a node",
		targets: []target{{groupCore, []string{"persistentvolumes"}}}, verbs: verbsWriteDelete,
	},
	{
		reason: "provide the volumes of other workloads, with their tokens and data",
		targets: []target{{"storage.k8s.io", []string{
			"csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments", "volumeattributesclasses",
		}}},
		verbs: verbsWriteDelete,
	},
	{
		reason: "change the isolation and the priority of other workloads",
		targets: []target{
			{"node.k8s.io", []string{"runtimeclasses"}},
			{"scheduling.k8s.io", []string{"compositepodgroups", "podgroups", "priorityclasses", "workloads"}},
		},
		verbs: verbsWriteDelete,
	},
	{
		reason: "take devices from other workloads, and evict the workloads that use them",
		targets: []target{{"resource.k8s.io", []string{
			"deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourcepoolstatusrequests",
			"resourceslices",
		}}},
		verbs: verbsWriteDelete,
	},
	{
		// A Service with an external IP, and the address in the status of another, also attract traffic.
		reason: "receive the traffic of every Service",
		targets: []target{
			{groupCore, []string{"endpoints", "services"}},
			{"discovery.k8s.io", []string{"endpointslices"}},
			{"networking.k8s.io", []string{"ipaddresses", "servicecidrs"}},
		},
		verbs: verbsWriteDelete,
	},
	{
		reason: "receive the traffic of every host name, and open or block the network of other workloads",
		targets: append([]target{
			{"networking.k8s.io", []string{"ingressclasses", "ingresses", "networkpolicies"}},
			{"route.openshift.io", []string{"routes"}},
		}, everythingIn("cilium.io", "*.istio.io", "gateway.networking.k8s.io", "k8s.cni.cncf.io", "metallb.io",
			"policy.networking.k8s.io",
			"projectcontour.io", "projectcalico.org", "*.projectcalico.org", "traefik.io")...),
		verbs: verbsWriteDelete,
	},
	{
		reason:  "keep the requests of other clients, also of administrators, from the API server",
		targets: []target{{groupFairness, []string{star}}}, verbs: verbsWriteDelete,
	},
	{
		reason:  "install packages, run them with every image, ServiceAccount and permission, and uninstall them",
		targets: everythingIn(packageGroups...), verbs: verbsWriteDelete,
	},
	{
		reason: "create every object that Crossplane may create, and delete objects that it has created",
		targets: []target{
			{groupComposition, []string{
				"compositeresourcedefinitions", "compositionrevisions", "compositions", "environmentconfigs",
				"managedresourceactivationpolicies", "managedresourcedefinitions", "usages",
			}},
			{groupOperation, []string{"cronoperations", "operations", "watchoperations"}},
			{groupProtection, []string{"clusterusages", "usages"}},
		},
		verbs: verbsWriteDelete,
	},
	{
		reason:  "read and change every custom resource with a conversion webhook, and delete it with its CRD",
		targets: []target{{groupDefinitions, []string{"customresourcedefinitions"}}}, verbs: verbsWriteDelete,
	},
	{
		reason: "read, change and refuse all requests to the API server, and allow requests that a policy denies",
		targets: append([]target{{groupAdmission, []string{
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
			"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
		}}}, everythingIn("*.gatekeeper.sh", "kyverno.io", "policies.kubewarden.io", "policies.kyverno.io")...),
		verbs: verbsWriteDelete,
	},
	{
		reason:  "serve API groups in place of the API server",
		targets: []target{{groupAggregation, []string{"apiservices"}}}, verbs: verbsWriteDelete,
	},
	{
		reason: "keep the API server from storing objects, and rewrite all stored objects",
		targets: []target{
			{"internal.apiserver.k8s.io", []string{"storageversions"}},
			{"storagemigration.k8s.io", []string{"storageversionmigrations"}},
		},
		verbs: verbsWriteDelete,
	},
	{
		reason:  "obtain client certificates of every user",
		targets: []target{{groupCertificates, []string{"certificatesigningrequests"}}}, verbs: verbsChange,
	},
	{
		reason:  "obtain client certificates of every user",
		targets: []target{{groupCertificates, []string{"signers"}}}, verbs: []string{"approve", "attest", "sign"},
	},
	{
		// The controller manager approves the request of a client with this permission.
		reason: "obtain the client certificate of every node",
		targets: []target{{groupCertificates, []string{
			"certificatesigningrequests/nodeclient", "certificatesigningrequests/selfnodeclient",
		}}},
		verbs: []string{"create"},
	},
	{
		reason:  "obtain the certificates of other pods",
		targets: []target{{groupCertificates, []string{"podcertificaterequests"}}}, verbs: verbsWriteDelete,
	},
	{
		reason:  "replace the CA certificates that other workloads trust",
		targets: []target{{groupCertificates, []string{"clustertrustbundles"}}, {"trust.cert-manager.io", []string{star}}},
		verbs:   verbsWriteDelete,
	},
	{
		// cert-manager and the operators of Secrets write the Secret that the object names.
		reason: "obtain certificates of every host name, and read and replace the credentials of other workloads",
		targets: everythingIn("acme.cert-manager.io",
			"bitnami.com", "cert-manager.io", "external-secrets.io", "*.external-secrets.io",
			"secrets-store.csi.x-k8s.io", "secrets.hashicorp.com"),
		verbs: verbsWriteDelete,
	},
	{
		reason:  "run privileged pods on OpenShift",
		targets: []target{{"security.openshift.io", []string{"securitycontextconstraints"}}},
		verbs:   append([]string{"use"}, verbsWriteDelete...),
	},
	{
		reason:  "get a token of every user of OpenShift, and add users to every group",
		targets: everythingIn("oauth.openshift.io", "user.openshift.io"), verbs: verbsWriteDelete,
	},
	{
		reason:  "change the files of all nodes and the control plane of OpenShift",
		targets: everythingIn("config.openshift.io", "machineconfiguration.openshift.io", "operator.openshift.io"),
		verbs:   verbsWriteDelete,
	},
}

// unlisted is the escalation of a grant for Kubernetes itself that is neither in the table nor harmless: a later
// version of Kubernetes can add resources, subresources and verbs.
var unlisted = escalation{reason: "use a part of Kubernetes that is not known to be harmless"}

// harmless are the permissions for Kubernetes itself, other than to read, that need no approval.
var harmless = []escalation{
	{
		reason:  "nothing acts on an Event, and every provider may write them",
		targets: []target{{groupCore, []string{"events"}}, {groupEvents, []string{"events"}}}, verbs: []string{star},
	},
	{
		reason:  "the answer changes nothing, and needs the credentials or names only identities",
		targets: everythingIn("authentication.k8s.io", "authorization.k8s.io"), verbs: []string{"create"},
	},
	{
		reason:  "a new namespace is empty",
		targets: []target{{groupCore, []string{"namespaces"}}}, verbs: []string{"create"},
	},
	{
		reason:  "a new ServiceAccount has no permissions",
		targets: []target{{groupCore, []string{"serviceaccounts"}}}, verbs: []string{"create"},
	},
	{
		reason:  "a new claim gets a new volume, which only a Pod can use",
		targets: []target{{groupCore, []string{"persistentvolumeclaims"}}}, verbs: []string{"create"},
	},
	{
		reason:  "a request waits until a person or a controller approves it",
		targets: []target{{groupCertificates, []string{"certificatesigningrequests"}}}, verbs: []string{"create"},
	},
}

// everythingIn returns the targets for all resources of some groups.
func everythingIn(groups ...string) []target {
	out := make([]target, len(groups))
	for i, group := range groups {
		out[i] = target{group, []string{star}}
	}
	return out
}
