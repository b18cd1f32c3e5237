package fence

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// RuntimesName is the name of the fence of package runtimes.
const RuntimesName = "xpkg-runtime-fence"

// Manager has the names of the objects that a manager relies on.
type Manager struct {
	// Namespace is the namespace of the manager and of the runtimes.
	Namespace string
	// Lease is the Lease of the manager.
	Lease string
	// PolicyConfigMap is the ConfigMap with its permission policy. It may be empty.
	PolicyConfigMap string
}

// Runtimes returns the fence of the package runtimes of a manager.
//
// Every provider may write all Secrets, ConfigMaps and Leases by default, as Crossplane users expect. The fence
// excludes the objects with which a runtime could take over its manager or obtain the permissions of another identity:
// it would otherwise need no request, and so no approval. Reads cannot be denied by admission.
//
// A runtime is a ServiceAccount in the namespace of the manager that may create neither packages nor revisions. This
// excludes the manager and Crossplane core: an identity that may install packages needs no other way to obtain
// permissions.
func Runtimes(m Manager) Fence {
	return Fence{
		Name: RuntimesName, Purpose: "protects the manager from package runtimes",
		Risk: "a package runtime may take over the manager",
		Conditions: []admissionv1.MatchCondition{{
			Name: "package-runtime",
			Expression: "request.userInfo.username.startsWith(" + quote("system:serviceaccount:"+m.Namespace+":") + ") && " +
				mayNotCreate("providers") + " && " + mayNotCreate("providerrevisions"),
		}},
		Rules: []admissionv1.Rule{
			{APIGroups: []string{corev1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"configmaps", "secrets"}},
			{APIGroups: []string{coordinationv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"leases"}},
		},
		Variables: []admissionv1.Variable{
			// A deletion of a collection has no name in its request.
			{Name: "target", Expression: `request.operation == "DELETE" ? dyn(oldObject) : dyn(object)`},
			{Name: "name", Expression: "variables.target.metadata.name"},
			{Name: "type", Expression: `variables.target.?type.orValue("")`},
			{Name: "own", Expression: "request.namespace == " + quote(m.Namespace)},
			{Name: "policy", Expression: quote(m.PolicyConfigMap)},
		},
		Validations: []admissionv1.Validation{
			deny(
				"leases", "!variables.own",
				"A package runtime writes Leases in its own namespace only: with others it would stop other controllers.",
			),
			deny("leases", "variables.name == "+
				quote(m.Lease), "A package runtime must not write the Lease of the package manager, which would stop the manager."),
			deny("configmaps", "variables.own && variables.name == variables.policy",
				"A package runtime must not write the permission policy of the package manager, which limits its permissions."),
			deny(
				"configmaps", `variables.name == "kube-root-ca.crt"`,
				"A package runtime must not write the CA with which other workloads verify the API server.",
			),
			deny("secrets", "variables.own && (variables.name == "+quote(v1.RootCASecretName)+
				` || variables.name.endsWith("-tls-server") || variables.name.endsWith("-tls-client"))`,
				"A package runtime must not write the certificates of the package manager and of other runtimes. Use a name that does not end with -tls-server or -tls-client."),
			deny(
				"secrets", `variables.own && variables.type == "helm.sh/release.v1"`,
				"A package runtime must not write the Helm releases in the namespace of the package manager.",
			),
			deny("secrets", `variables.type in ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"]`,
				"A package runtime must not write tokens for the API server, with which it would obtain the permissions of another identity. Its own token is mounted."),
			{
				Expression: `!request.namespace.startsWith("kube-")`,
				Message:    "A package runtime must not write ConfigMaps and Secrets of system namespaces (kube-*), which configure the cluster. Use another namespace.",
			},
		},
	}
}

// leaseRule matches the validation that protects the Lease of a manager.
var leaseRule = lazyregexp.New(`^request\.resource\.resource != "leases" \|\| !\(variables\.name == (".*")\)$`)

// IsRuntimes reports whether a live policy and its binding are the fence of package runtimes of a manager in a
// namespace. The policy itself contains the names of the Lease and of the ConfigMap of the manager.
func IsRuntimes(
	namespace string, policy *admissionv1.ValidatingAdmissionPolicy, binding *admissionv1.ValidatingAdmissionPolicyBinding,
) bool {
	m := Manager{Namespace: namespace}
	for _, v := range policy.Spec.Variables {
		if v.Name == "policy" && json.Unmarshal([]byte(v.Expression), &m.PolicyConfigMap) != nil {
			return false
		}
	}
	for _, v := range policy.Spec.Validations {
		if found := leaseRule().FindStringSubmatch(v.Expression); found != nil &&
			json.Unmarshal([]byte(found[1]), &m.Lease) != nil {
			return false
		}
	}
	return m.Lease != "" && Runtimes(m).IsInForce(policy, binding)
}

// mayNotCreate returns the condition that the identity of a request may not create objects of a resource of packages.
func mayNotCreate(resource string) string {
	return fmt.Sprintf("!authorizer.group(%q).resource(%q).check(\"create\").allowed()", v1.Group, resource)
}

// deny returns the validation that denies the writes of a resource under a condition.
func deny(resource, condition, message string) admissionv1.Validation {
	return admissionv1.Validation{
		Expression: fmt.Sprintf("request.resource.resource != %q || !(%s)", resource, condition), Message: message,
	}
}

// quote returns a string of CEL. A string in JSON is one in CEL.
func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // Strings always encode.
	}
	return string(raw)
}
