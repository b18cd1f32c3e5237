package cli_test

import (
	"bytes"
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	commands "github.com/xpkg-dev/xpkg/internal/testing/command"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/localregistry"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/signing"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// A control plane that reaches no registry but a private one installs packages from a bundle with their dependencies
// and the images of their runtimes, whose signatures it verifies as the policy in the bundle requires.
func TestAirGap(t *testing.T) {
	server := port.Serve(t, localregistry.New(t))
	upstream := strings.TrimPrefix(server.URL, "http://")
	private := strings.TrimPrefix(port.Serve(t, localregistry.New(t)).URL, "http://")
	push := func(repository, stream string) oci.Reference {
		return publish.Stream(t, upstream, repository, "v1.0.0", []byte(stream))
	}
	meta := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: p}\nspec:\n"
	image := push("airgap/image", meta)
	base := push(
		"airgap/base", meta+"  controller: {image: "+image.String()+"}\n"+publish.Definition("base.airgap.test", "Kept", "v1"),
	)
	top := push("airgap/top", meta+fmt.Sprintf("  dependsOn: [{provider: %s/airgap/base, version: '>=v1.0.0'}]\n", upstream)+
		publish.Definition("top.airgap.test", "Kept", "v1"))
	key := signing.NewKey(t, "p256", crypto.SHA256)
	signAll(t, key, image, base, top)

	dir := t.TempDir()
	policy := &v1beta1.ImageConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ImageConfig"},
		ObjectMeta: metav1.ObjectMeta{Name: "airgap-policy"},
	}
	policy.Spec.MatchImages = []v1beta1.ImageMatch{{Type: v1beta1.Prefix, Prefix: upstream + "/airgap"}}
	policy.Spec.Verification = signing.Required("airgap-keys", "release")
	text, err := yaml.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: controller.DefaultNamespace, Name: "airgap-keys"},
		Data:       map[string][]byte{"release": key.PEM(t)},
	}
	keys, err := yaml.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	text = append(append(text, "---\n"...), keys...)
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("policy.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}

	dials := &env.Dials{}
	b := benchWith(t, func(o *controller.Options, _ *fetch.Source) {
		content := env.OpenContent(t, dir, fetch.Options{Remote: remote.Options{
			Dial: dials.Dial, Lookup: env.Unresolvable,
		}})
		o.Content, o.Images, o.InUse = content.Source, content.Source, content.Cache.Use
		o.Dependencies = &controller.Dependencies{Registry: content.Source}
		o.Runtimes = runtime.Everywhere(runtime.Deployment)
	})
	e := &env.Env{Config: b.config, Client: env.NewClient(t, b.config)}
	e.StartKubelet(t, controller.DefaultNamespace)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	commands.Run(t, "bundle", "save", top.String(), "-o", file("b.tar"), "--image-config", file("policy.yaml"))
	server.Close() // The gap.
	code, out, errs := commands.Output(t, "bundle", "load", file("b.tar"), private+"/mirror", "--lock", file("xpkg.lock"), "--trust")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, c := range imageConfigs(t, out) {
		e.CreateTemporary(t, &c)
	}
	if !strings.Contains(out, "name: airgap-keys") {
		t.Errorf("the Secret with the key is not printed:\n%s", out)
	}
	e.CreateTemporary(t, secret)
	b.must(t, 0, "install", "--lock", file("xpkg.lock"), "--wait", "3m", "--yes")
	p := b.provider(t, "airgap-base")
	if !verified(p, policy.Name) {
		t.Errorf("the package was not verified: %+v", p.Status.AppliedImageConfigRefs)
	}
	for _, image := range runtimeImages(t, b.client, "airgap-base", "airgap-top") {
		if !strings.HasPrefix(image, private+"/mirror/") {
			t.Errorf("the runtime has the image %s", image)
		}
	}
	if all := dials.To(""); all == 0 || all != dials.To(private) {
		t.Errorf("%d of %d connections are to the private registry", dials.To(private), all)
	}
	for _, name := range []string{"airgap-top", "airgap-base"} {
		b.must(t, 0, "uninstall", "provider", name, "--yes", "--wait", "1m")
	}
}

// signAll signs images, one under a tag and the others in artifacts that refer to them.
func signAll(t *testing.T, key *signing.Key, refs ...oci.Reference) {
	t.Helper()
	c := remote.New(remote.Options{})
	t.Cleanup(c.Close)
	for i, ref := range refs {
		d, err := c.Resolve(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		ref = ref.WithDigest(d.Digest)
		if i == 0 {
			payload := signing.Payload(d.Digest)
			signing.TagPayload(t, c, ref, payload, key.Tagged(t, payload))
			continue
		}
		signing.AttachBundle(t, c, ref, key.Bundle(t, signing.Statement(d.Digest, signing.Sign)))
	}
}

// imageConfigs returns the ImageConfigs in YAML.
func imageConfigs(t *testing.T, text string) []v1beta1.ImageConfig {
	t.Helper()
	var out []v1beta1.ImageConfig
	for _, document := range strings.Split(text, "\n---\n") {
		var c v1beta1.ImageConfig
		if err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(document)), 4096).Decode(&c); err != nil {
			t.Fatal(err)
		}
		if c.Kind == "ImageConfig" {
			out = append(out, c)
		}
	}
	if len(out) != 2 {
		t.Fatalf("the bundle has %d ImageConfigs, want a rewrite and a policy:\n%s", len(out), text)
	}
	return out
}

// verified reports whether an ImageConfig required signatures of a package.
func verified(p *v1.Provider, config string) bool {
	for _, applied := range p.Status.AppliedImageConfigRefs {
		if applied.Name == config && applied.Reason == v1.ImageConfigReasonVerify {
			return true
		}
	}
	return false
}

// runtimeImages returns the images of the Deployments of packages, one for each.
func runtimeImages(t *testing.T, c client.Client, packages ...string) []string {
	t.Helper()
	all := &appsv1.DeploymentList{}
	if err := c.List(t.Context(), all, client.InNamespace(controller.DefaultNamespace)); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range all.Items {
		for _, name := range packages {
			if strings.HasPrefix(d.Name, name+"-") {
				out = append(out, d.Spec.Template.Spec.Containers[0].Image)
			}
		}
	}
	if len(out) != len(packages) {
		t.Fatalf("there are %d Deployments of %d packages", len(out), len(packages))
	}
	return out
}
