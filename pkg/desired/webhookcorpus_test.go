package desired_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Real providers with webhooks install without consent.
func TestWebhooksOfRealProvidersNeedNoConsent(t *testing.T) {
	packages, err := filepath.Glob(filepath.Join(corpus.Dir(t), "providers", "*", "package", "webhookconfigurations"))
	if err != nil || len(packages) == 0 {
		t.Fatalf("the corpus has %d providers with webhooks: %v", len(packages), err)
	}
	for _, folder := range packages {
		dir := filepath.Dir(folder)
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			var stream []byte
			for _, pattern := range []string{"crossplane.yaml", "crds/*.yaml", "webhookconfigurations/*.yaml"} {
				files, err := filepath.Glob(filepath.Join(dir, pattern))
				if err != nil || len(files) == 0 {
					t.Fatalf("%s: %d files, %v", pattern, len(files), err)
				}
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					stream = append(append(stream, "\n---\n"...), text...)
				}
			}
			pkg, err := xpkg.Read(stream, xpkg.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			objects, err := desired.Of(pkg, desired.Options{Package: "real"})
			if err != nil {
				t.Fatal(err)
			}
			if !objects.CallsRuntime() {
				t.Error("the package has no webhooks")
			}
			if rules, err := objects.OutsideWebhookRules(); err != nil || len(rules) > 0 {
				t.Errorf("rules for resources of others: %s, %v", desired.FormatWebhookRules(rules), err)
			}
		})
	}
}
