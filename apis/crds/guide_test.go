package crds

import (
	"os"
	"strings"
	"testing"
)

// TestGuideOfPrivateRegistries validates the manifests of the guide.
func TestGuideOfPrivateRegistries(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/private-registries.md")
	if err != nil {
		t.Fatal(err)
	}
	crd := ours(t, Packages)["imageconfigs.pkg.crossplane.io"]
	submitted := 0
	for _, block := range strings.Split(string(guide), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for doc := range strings.SplitSeq(block, "\n---\n") {
			if errs := submit(t, crd, "v1beta1", parse(t, doc)); len(errs) > 0 {
				t.Errorf("%s\n%v", doc, errs)
			}
			submitted++
		}
	}
	if submitted != 5 {
		t.Errorf("%d ImageConfigs are in the guide", submitted)
	}
}
