package apply

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// isGenerated reports whether xpkg generates an object. Other objects come from a package.
func isGenerated(ref plan.Ref) bool { return strings.HasPrefix(ref.APIVersion, rbacv1.GroupName+"/") }

// checkMetadata fails before the first write of a plan if the API server would refuse the name, the labels or the annotations of one
// of its objects.
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
