package localcore

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/runtime/identity"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
)

func crd(name string) *fstest.MapFile {
	return &fstest.MapFile{
		Data: []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"),
	}
}

// The initialization of core gets the CRDs of core, and none of the package API, whatever their files are called.
func TestCRDsOfPackagesAreWithheld(t *testing.T) {
	image := fstest.MapFS{
		"crds/a.yaml": crd("compositions.apiextensions.crossplane.io"), "crds/b.yml": crd("operations.ops.crossplane.io"),
		"crds/c.yaml": crd("providers.pkg.crossplane.io"), "crds/d.yaml": crd("locks.pkg.crossplane.io"),
		"crds/e.txt": crd("notes.example.org"), "crds/folder/f.yaml": crd("deep.example.org"),
		"crds/link.yaml": &fstest.MapFile{Mode: os.ModeSymlink, Data: []byte("/etc/passwd")},
	}
	got, err := coreCRDs(image)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range got {
		names = append(names, m.name)
	}
	if want := []string{"a.yaml", "b.yml"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if got, err := coreCRDs(fstest.MapFS{}); len(got) > 0 || err != nil {
		t.Errorf("an image without CRDs: got %v and %v", got, err)
	}
	image["crds/bad.yaml"] = &fstest.MapFile{Data: []byte("a: b: c")}
	if _, err := coreCRDs(image); !errors.Is(err, ErrInvalid) {
		t.Errorf("a file that is not YAML: got %v", err)
	}
	large := fstest.MapFS{"crds/a.yaml": &fstest.MapFile{Data: make([]byte, maxManifests+1)}}
	if _, err := coreCRDs(large); !errors.Is(err, ErrInvalid) {
		t.Errorf("manifests that are too large: got %v", err)
	}
}

func TestVersionOf(t *testing.T) {
	for _, c := range []struct {
		label, tag, want string
		code             *errcode.Code
	}{
		{label: "v2.3.4", tag: "latest", want: "v2.3.4"},
		{label: "", tag: "v2.3.4", want: "v2.3.4"},
		{label: "v2.0.0-rc.1", want: "v2.0.0-rc.1"},
		{label: "v2.4.0-20260101000000-abcdefabcdef", want: "v2.4.0-20260101000000-abcdefabcdef"},
		{label: "unknown", tag: "stable", want: ""},
		{want: ""},
		{label: "v1.20.11", tag: "v2.0.0", code: &ErrVersion},
		{tag: "v1.14.0", code: &ErrVersion},
	} {
		got, err := VersionOf(unpack.RuntimeConfig{Labels: map[string]string{LabelVersion: c.label}}, c.tag)
		if got != c.want || (err != nil) != (c.code != nil) || c.code != nil && !errors.Is(err, *c.code) {
			t.Errorf("label %q and tag %q: got %q and %v, want %q", c.label, c.tag, got, err, c.want)
		}
	}
}

// Core starts with the settings of a core beside the manager, and is restarted with a new certificate and not with a
// new token.
func TestStart(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: "https://127.0.0.1:16443"}
	c := &Core{
		opts:      Options{Namespace: "crossplane-system", Args: []string{"--debug"}, Config: config},
		listeners: listeners{webhook: 1, metrics: 2, health: 3},
		issuer: identity.NewIssuer(
			fake.NewClientBuilder().WithScheme(scheme).Build(), config, "crossplane-system", time.Now,
		),
	}
	files := map[string][]byte{
		"/tls/client/tls.crt": []byte("one"), "/tls/client/ca.crt": []byte("ca"), "/token": []byte("a"),
	}
	first, err := c.startSpec(files)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"core", "start", crossplane.ExternalRuntime, "--webhook-port=1", "--metrics-port=2", "--health-probe-port=3",
		"--debug",
	}
	if !slices.Equal(first.Args, want) {
		t.Errorf("got %q, want %q", first.Args, want)
	}
	for name, value := range map[string]string{
		"POD_NAMESPACE": "crossplane-system", "POD_SERVICE_ACCOUNT": "crossplane", "TLS_CLIENT_CERTS_DIR": "/tls/client",
		"XPKG_CACHE_DIR": "/tmp",
	} {
		if first.Env[name] != value {
			t.Errorf("%s is %q, want %q", name, first.Env[name], value)
		}
	}
	files["/token"] = []byte("b")
	renewed, err := c.startSpec(files)
	if err != nil || !maps.Equal(first.Env, renewed.Env) {
		t.Errorf("a new token changes the environment: %v", err)
	}
	files["/tls/client/tls.crt"] = []byte("two")
	if renewed, err = c.startSpec(files); err != nil || maps.Equal(first.Env, renewed.Env) {
		t.Errorf("a new certificate does not change the environment: %v", err)
	}

	spec, err := c.initSpec(files, []manifest{{"a.yaml", []byte("a")}}, false)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(spec.Args, []string{"core", "init", "--activation=*"}) {
		t.Errorf("the initialization has the arguments %q", spec.Args)
	}
	if _, ok := spec.Files[crdMount+"/a.yaml"]; !ok || spec.Env["CRDS_PATH"] != crdMount ||
		spec.Env["ENABLE_WEBHOOKS"] != "false" || spec.Env["WEBHOOK_ENABLED"] != "false" ||
		spec.Env["WEBHOOK_SERVICE_NAME"] != "" {
		t.Errorf("%v, files %v", spec.Env, slices.Sorted(maps.Keys(spec.Files)))
	}
	if spec, err = c.initSpec(files, nil, true); err != nil || spec.Env["WEBHOOK_ENABLED"] != "true" ||
		spec.Env["WEBHOOK_SERVICE_NAME"] != webhookName {
		t.Errorf("%v %v", spec.Env, err)
	}
}

// The fence exists before the identity of core, so that core never writes a package.
func TestFenceIsFirst(t *testing.T) {
	for i, o := range fencedObjects("crossplane-system") {
		if isFence := o.GetName() == crossplane.FenceName; isFence != (i < 2) {
			t.Errorf("object %d is %T %s", i, o, o.GetName())
		}
	}
}

func TestBinaryImageRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if is, err := IsExecutable(text); is || err != nil {
		t.Errorf("text: got %t and %v", is, err)
	}
	for _, file := range []string{text, "/bin/sh", dir} {
		if _, err := BinaryImage(t.Context(), file); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v", file, err)
		}
	}
}

// The image of an executable depends on its content only.
func TestBinaryImageIsReproducible(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkExecutable(self); err != nil {
		t.Skipf("the test program is linked dynamically: %v", err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	var digests []string
	for range 2 {
		dir := t.TempDir()
		for name, data := range map[string][]byte{
			"crossplane": content, "crds/a.yaml": []byte("a: b\n"), "webhookconfigurations/b.yaml": []byte("c: d\n"),
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		image, err := BinaryImage(t.Context(), filepath.Join(dir, "crossplane"))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, image.Digest().String())
		if !strings.Contains(string(image.RawConfig()), "Entrypoint") {
			t.Errorf("%s", image.RawConfig())
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("got %v", digests)
	}
}
