package fence

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// RemovalsName is the name of the guard of removals.
const RemovalsName = "xpkg-removals"

// Remover is a manager whose deletions of packages and their objects need no answer.
type Remover struct {
	// Username is its name for the API server.
	Username string
	// Namespace is the namespace of the manager and of the runtimes.
	Namespace string
}

// Removals returns the guard of removals. It denies all identities but the manager, with administrators and the garbage
// collector, the deletions that lose custom resources or stop a runtime, unless an annotation of the object answers for
// that:
//   - of a package that has custom resources, as its status tells. The manager counts them again before it deletes
//     anything;
//   - of a CRD, XRD or MRD that belongs to a package: the manager deletes them with the package;
//   - of an active revision;
//   - of the namespace of the manager.
//
// A deletion that orphans the objects of a package keeps its custom resources, and is not denied.
func Removals(r Remover) Fence {
	key := quote(v1.AnnotationOnDelete)
	command := func(value string) string {
		return quote("kubectl annotate --overwrite ") + ` + variables.resource + "." + request.resource.group + " " + variables.name + ` +
			quote(" "+v1.AnnotationOnDelete+"="+value)
	}
	const anyway = "variables.answer.startsWith('cascade')"
	const definition = `variables.resource in ["customresourcedefinitions", "compositeresourcedefinitions", "managedresourcedefinitions"]`
	f := Fence{
		Name: RemovalsName, Purpose: "denies deletions that lose custom resources",
		Risk: "a deletion of a package is held while it has custom resources, but not refused, and a deletion of its CRDs loses them",
		Conditions: []admissionv1.MatchCondition{
			{Name: "is-not-the-manager", Expression: "request.userInfo.username != " + quote(r.Username)},
			{Name: "is-not-being-deleted", Expression: "!has(oldObject.metadata.deletionTimestamp)"},
		},
		Operations: []admissionv1.OperationType{admissionv1.Delete},
		Rules: []admissionv1.Rule{
			{APIGroups: []string{v1.Group}, APIVersions: []string{"*"}, Resources: []string{
				"providers", "configurations", "providerrevisions", "configurationrevisions", "functionrevisions",
			}},
			{
				APIGroups: []string{"apiextensions.k8s.io"}, APIVersions: []string{"*"},
				Resources: []string{"customresourcedefinitions"},
			},
			{APIGroups: []string{"apiextensions.crossplane.io"}, APIVersions: []string{"*"}, Resources: []string{
				"compositeresourcedefinitions", "managedresourcedefinitions",
			}},
			{APIGroups: []string{corev1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"namespaces"}},
		},
		Variables: []admissionv1.Variable{
			{Name: "resource", Expression: "request.resource.resource"},
			{Name: "name", Expression: "oldObject.metadata.name"},
			{Name: "answer", Expression: "oldObject.metadata.?annotations[?" + key + "].orValue('')"},
			{Name: "count", Expression: "variables.resource in ['providers', 'configurations'] ? " +
				"int(oldObject.?status.?customResources.orValue(0)) : 0"},
			{Name: "keeps", Expression: "variables.answer == 'orphan' || request.options.?propagationPolicy.orValue('') == 'Orphan'"},
			{Name: "permits", Expression: "variables.answer.matches('^cascade=[0-9]{1,15}$') && " +
				"int(variables.answer.substring(8)) >= variables.count"},
			{Name: "owner", Expression: definition + " && has(oldObject.metadata.ownerReferences) ? " +
				"oldObject.metadata.ownerReferences.filter(o, o.apiVersion.startsWith(" + quote(v1.Group+"/") + ")) : []"},
			{Name: "collects", Expression: `request.userInfo.username in ["system:kube-controller-manager", ` +
				`"system:serviceaccount:kube-system:generic-garbage-collector"]`},
		},
		Validations: []admissionv1.Validation{
			{
				Expression: "variables.count == 0 || variables.keeps || variables.permits",
				Message:    "The package has custom resources, which would be deleted with it.",
				MessageExpression: `variables.resource + "." + request.resource.group + "/" + variables.name + " has " + string(variables.count) + ` +
					quote(" custom resources, which would be deleted with it. Answer what happens to them, and delete it again. To keep them, with all objects of the package: ") +
					" + " + command("orphan") + " + " + quote(" To delete them: ") + " + " + command("cascade=") + " + string(variables.count)",
			},
			{
				Expression: "variables.owner.size() == 0 || " + anyway,
				Message:    "The definition belongs to a package. Deleting it deletes all its custom resources.",
				MessageExpression: "variables.name + " + quote(" belongs to ") +
					` + variables.owner[0].kind + "/" + variables.owner[0].name + ` +
					quote(". Deleting it deletes all its custom resources, and the package creates it again. Delete the package instead. To delete it anyway: ") +
					" + " + command("cascade"),
			},
			{
				Expression: `!variables.resource.endsWith("revisions") || variables.collects || ` +
					`oldObject.?spec.?desiredState.orValue('') != "Active" || ` + anyway,
				Message: "The revision is active. Deleting it stops its runtime.",
				MessageExpression: "variables.name + " + quote(" is active. Deleting it stops its runtime until the package has created it again. "+
					"To try a version again, set the annotation "+v1.AnnotationRetry+" of the package. To delete it anyway: ") +
					" + " + command("cascade"),
			},
			{
				Expression: "variables.resource != 'namespaces' || variables.name != " + quote(r.Namespace) + " || " + anyway,
				Message: fmt.Sprintf("The namespace has the package manager, the runtimes of packages and their certificates. "+
					"Delete the packages first. To delete it anyway: kubectl annotate --overwrite namespace %s %s=cascade",
					r.Namespace, v1.AnnotationOnDelete),
			},
		},
	}
	return f
}
