package manifests

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The objects of each kind of runtime, with each kind of configuration, match the files
// in testdata. Edge case 93 covers the objects without a configuration.
func TestGolden(t *testing.T) {
	every := &v1beta1.DeploymentRuntimeConfig{}
	read(t, "config.yaml", every)
	old := &v1alpha1.ControllerConfig{}
	read(t, "controllerconfig.yaml", old)
	configs := map[string]*v1beta1.DeploymentRuntimeConfig{
		"defaults": nil, "config": every, "controllerconfig": FromControllerConfig(old),
	}
	for name, config := range configs {
		for kind, in := range map[string]Input{"provider": provider(), "function": function()} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				in.Config = config
				in.PullSecrets = []string{"of-the-package", "of-an-image-config"}
				golden(t, filepath.Join(kind, name), build(t, in))
			})
		}
	}
}

func golden(t *testing.T, dir string, o Objects) {
	t.Helper()
	objects := map[string]any{"deployment": o.Deployment, "service": o.Service, "serviceaccount": o.ServiceAccount}
	for name, object := range objects {
		got, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", dir, name+".yaml")
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s (-want +got):\n%s", path, cmp.Diff(string(want), string(got)))
		}
	}
}

// read reads a file of testdata, and fails on fields that the type does not have.
func read(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatal(err)
	}
}
