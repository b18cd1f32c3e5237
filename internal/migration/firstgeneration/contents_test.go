package firstgeneration

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A CRD of two packages is one problem, whether or not the cluster has it.
func TestACRDOfTwoPackagesIsOneProblem(t *testing.T) {
	const name = "things.example.org"
	for _, recorded := range []int{0, 1, 2} {
		s := &snapshot{}
		for i, provider := range []string{"a", "b"} {
			in := &install{provider: provider, name: provider}
			if i < recorded {
				in.crds = []*apiextensionsv1.CustomResourceDefinition{{ObjectMeta: metav1.ObjectMeta{Name: name}}}
			}
			o := xpkg.Object{Name: name}
			o.GVK.Kind = plan.DefinitionKind
			s.installs = append(s.installs, in)
			s.contents = append(s.contents, &content{of: in, pkg: &xpkg.Package{Objects: []xpkg.Object{o}}})
		}
		s.problems = s.shared()
		if got := s.findings(); len(got) != 1 || !strings.Contains(got[0].Problem, name) {
			t.Errorf("listed in %d records: %+v", recorded, got)
		}
	}
}
