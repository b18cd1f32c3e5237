package crossplane

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/fence"
)

// FenceName is the name of the ValidatingAdmissionPolicy of the fence, and of its binding.
const FenceName = "xpkg-crossplane-fence"

// DefaultAccount is the name of the ServiceAccount in the Helm chart of Crossplane.
const DefaultAccount = "crossplane"

// packageGroup is the API group of packages.
const packageGroup = "pkg.crossplane.io"

// fencedFields are the top-level fields that a fenced client must not change. An object of the package
// API has no others.
var fencedFields = []string{
	"spec", "status", "packages", "metadata.labels", "metadata.annotations", "metadata.finalizers",
	"metadata.ownerReferences",
}

// Fence returns a ValidatingAdmissionPolicy, and its binding, that deny Crossplane core the writes of the package API.
// Core has no setting that disables its package manager; a fenced core still composes resources. The initialization of
// core, which runs before each start, updates the Lock without a change, and creates the default
// DeploymentRuntimeConfig without a specification also if it exists. Both are allowed. Core reconciles each package and
// each revision all the same, fails at its first write, and would report that in an event again and again: such events
// are denied too.
func Fence(accounts ...types.NamespacedName) (
	*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding,
) {
	users := make([]string, len(accounts))
	for i, account := range accounts {
		users[i] = UserName(account)
	}
	// A list of strings in JSON is one in CEL.
	list, err := json.Marshal(users)
	if err != nil {
		panic(err) // Strings always encode.
	}
	return fence.Fence{
		Name:       FenceName,
		Conditions: []admissionv1.MatchCondition{{Name: "crossplane-core", Expression: userCondition + string(list)}},
		Rules: []admissionv1.Rule{
			{APIGroups: []string{packageGroup}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
			{APIGroups: []string{"", "events.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"events"}},
		},
		Validations: []admissionv1.Validation{{
			Expression: "request.resource.resource == 'events' ? " + concernsNoPackage + " : " + createsDefault + " || " +
				unchanged(),
			Message: "xpkg manages the packages of this cluster. Crossplane core composes resources, and does not write packages.",
		}},
	}.Objects()
}

// createsDefault is the CEL expression for the creation of an empty default DeploymentRuntimeConfig. Admission decides
// before the API server knows whether the object exists.
const createsDefault = "request.operation == 'CREATE' && request.resource.resource == 'deploymentruntimeconfigs' && " +
	"object.metadata.name == 'default' && dyn(object).?spec.orValue({}) == {}"

// concernsNoPackage is the CEL expression for an event, of either API group, about an object of another API. A deletion
// is one.
const concernsNoPackage = "request.operation == 'DELETE' || " +
	"!dyn(object).?involvedObject.?apiVersion.orValue(dyn(object).?regarding.?apiVersion.orValue('')).startsWith('" +
	packageGroup + "/')"

// userCondition begins the condition of the fence. A list of user names follows it.
const userCondition = "request.userInfo.username in "

// FencedAccounts returns the ServiceAccounts that the fence of a cluster covers, or none without a fence.
func FencedAccounts(ctx context.Context, reader client.Reader) ([]types.NamespacedName, error) {
	var policy admissionv1.ValidatingAdmissionPolicy
	if err := reader.Get(ctx, types.NamespacedName{Name: FenceName}, &policy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var out []types.NamespacedName
	for _, c := range policy.Spec.MatchConditions {
		var users []string
		list, ok := strings.CutPrefix(c.Expression, userCondition)
		if !ok || json.Unmarshal([]byte(list), &users) != nil {
			continue // Another client changed the policy.
		}
		for _, user := range users {
			account, ok := strings.CutPrefix(user, accountPrefix)
			if namespace, name, both := strings.Cut(account, ":"); ok && both {
				out = append(out, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	}
	return out, nil
}

// accountPrefix begins the user name of a ServiceAccount.
const accountPrefix = "system:serviceaccount:"

// UserName returns the user name of a ServiceAccount.
func UserName(account types.NamespacedName) string {
	return accountPrefix + account.Namespace + ":" + account.Name
}

// unchanged returns the CEL expression for an update that changes nothing.
func unchanged() string {
	terms := []string{"request.operation == 'UPDATE'"}
	for _, field := range fencedFields {
		// A field is optional in its parent, and metadata always exists.
		path := strings.Replace(field, ".", ".?", 1)
		if path == field {
			path = "?" + field
		}
		terms = append(terms, fmt.Sprintf("dyn(object).%s == dyn(oldObject).%s", path, path))
	}
	return strings.Join(terms, " && ")
}

// ChartValues returns the values of the Helm chart of Crossplane for a core beside the manager: it neither runs package
// runtimes nor grants permissions for packages. The RBAC manager has no replicas; without its deployment, the chart
// would also leave out the ClusterRoles that collect permissions for core and for users.
func ChartValues() map[string]any {
	return map[string]any{
		"args":        []any{ExternalRuntime},
		"rbacManager": map[string]any{"deploy": true, "replicas": 0},
	}
}
