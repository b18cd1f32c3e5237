package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/cli/manager"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// bootstrapped runs xpkg bootstrap.
func bootstrapped(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), append([]string{"xpkg", "bootstrap"}, args...), &terminal.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	return code, out.String(), errs.String()
}

func TestBootstrapPrints(t *testing.T) {
	code, out, errs := bootstrapped(t, "--namespace", "ns", "--image", "example.org/xpkg@sha256:"+
		strings.Repeat("1", 64), "--manager-arg=--verbose", "--no-network-policy")
	if code != 0 {
		t.Fatal(errs)
	}
	var kinds []string
	for _, document := range strings.Split("\n"+out, "\n---\n")[1:] {
		var o metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != o.Kind {
			kinds = append(kinds, o.Kind)
		}
	}
	fence := "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
	want := "Namespace CustomResourceDefinition " + strings.Repeat(fence, 5) +
		"ServiceAccount ClusterRole ClusterRoleBinding Role RoleBinding Role RoleBinding " +
		"ClusterRole ClusterRoleBinding Service PodDisruptionBudget Deployment"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
	for _, part := range []string{"image: example.org/xpkg@sha256:" + strings.Repeat("1", 64) +
		"\n", "- --verbose\n", "namespace: ns\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing", part)
		}
	}
	_, asJSON, _ := bootstrapped(t, "-o", "json")
	var list struct {
		Kind  string
		Items []json.RawMessage
	}
	if err := json.Unmarshal([]byte(asJSON), &list); err != nil || list.Kind != "List" || len(list.Items) < 20 {
		t.Errorf("JSON: a %s of %d items, %v", list.Kind, len(list.Items), err)
	}
}

// The arguments of the manager are those of its own flags.
func TestBootstrapPassesTheFlagsOfTheFirstGeneration(t *testing.T) {
	const index, preferred = "registry.example.org/index:v1", "registry.example.org/preferred:v1,10"
	code, out, errs := bootstrapped(t, "--first-generation", "--index", index, "--index", preferred)
	if code != 0 {
		t.Fatal(errs)
	}
	for _, part := range []string{"- --first-generation\n", "- --index=" + index + "\n", "- --index=" + preferred + "\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing", part)
		}
	}
	if _, out, _ := bootstrapped(t); strings.Contains(out, "--index") || strings.Contains(out, "--first-generation") {
		t.Error("the default manager has flags of the first generation")
	}
	for _, wrong := range []string{
		"registry.example.org/index", "registry.example.org/index:v1,high", "Not A Reference:v1",
	} {
		if code, out, _ := bootstrapped(t, "--index="+wrong); code == 0 || out != "" {
			t.Errorf("--index=%s: exit %d and %d bytes of output", wrong, code, len(out))
		}
	}
}

// The keys of indexes are a file of the pods, and only usable keys are accepted.
func TestBootstrapEmbedsTheKeysOfIndexes(t *testing.T) {
	const key = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
	file := filepath.Join(t.TempDir(), "index.pub")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := bootstrapped(t, "--index", "registry.example.org/index:v1", "--index-key", file)
	if code != 0 {
		t.Fatal(errs)
	}
	documents := strings.Split(out, "\n---\n")
	var d appsv1.Deployment
	if err := yaml.Unmarshal([]byte(documents[len(documents)-1]), &d); err != nil {
		t.Fatal(err)
	}
	pod := d.Spec.Template.Spec
	volume, mount := pod.Volumes[len(pod.Volumes)-1], pod.Containers[0].VolumeMounts[len(pod.Containers[0].VolumeMounts)-1]
	if volume.DownwardAPI == nil || volume.Name != mount.Name || !mount.ReadOnly {
		t.Fatalf("the volume %+v is mounted as %+v", volume, mount)
	}
	item := volume.DownwardAPI.Items[0]
	if !slices.Contains(pod.Containers[0].Args, "--index-key="+mount.MountPath+"/"+item.Path) {
		t.Errorf("the arguments %q do not name the file", pod.Containers[0].Args)
	}
	for name, value := range d.Spec.Template.Annotations {
		if item.FieldRef.FieldPath == "metadata.annotations['"+name+"']" && value == key {
			return
		}
	}
	t.Errorf("no annotation contains the key: %v", d.Spec.Template.Annotations)
}

func TestBootstrapRefusesUnusableKeysOfIndexes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.key")
	private := "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"
	if err := os.WriteFile(file, []byte(private), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + ".absent"} {
		if code, out, _ := bootstrapped(t, "--index-key", name); code == 0 || out != "" {
			t.Errorf("%s: exit %d and %d bytes of output", filepath.Base(name), code, len(out))
		}
	}
}

// Nothing is printed of options that make no sense.
func TestBootstrapRefuses(t *testing.T) {
	for _, arg := range []string{
		"--replicas=0", "--replicas=-1", "--package-group=rbac.authorization.k8s.io", "--package-group=no group",
	} {
		code, out, errs := bootstrapped(t, arg)
		if code != errcode.Usage.Exit || out != "" || !strings.HasPrefix(errs, "error: BootstrapOption: ") {
			t.Errorf("%s: exit %d, %q, %q", arg, code, out, errs)
		}
	}
}

// bootstrap can be repeated, corrects changed objects, and leaves the cluster of another package
// manager unchanged.
//
// hardening: H10
func TestBootstrapApplies(t *testing.T) {
	cfg, kubeconfig := cluster.Start(t), cluster.Kubeconfig(t)
	c, err := client.New(cfg, client.Options{Scheme: bootstrapScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteDeployments(t, c, "applied", "xpkg") })
	args := []string{"--apply", "--kubeconfig", kubeconfig, "--namespace", "applied"}
	foreign := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "providers.pkg.crossplane.io",
	}}
	ours := c.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign) == nil
	if !ours {
		definitions, err := crds.Packages()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range definitions {
			if d.Name == foreign.Name {
				foreign = d
			}
		}
		if err := c.Create(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := bootstrapped(t, args...); code != errcode.Conflict.Exit ||
			!strings.Contains(errs, packageapi.ErrForeignControlPlane.Name) {
			t.Errorf("a cluster of another user: exit code %d, %s", code, errs)
		}
		args = append(args, "--take-over")
	}
	for range 2 {
		if code, _, errs := bootstrapped(t, args...); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
	}
	d := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: "applied", Name: "xpkg"}
	if err := c.Get(t.Context(), key, d); err != nil {
		t.Fatal(err)
	}
	d.Spec.Template.Spec.Containers[0].Image = "somebody/else"
	if err := c.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := bootstrapped(t, args...); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if err := c.Get(t.Context(), key, d); err != nil ||
		strings.Contains(d.Spec.Template.Spec.Containers[0].Image, "somebody") {
		t.Errorf("image %s, %v", d.Spec.Template.Spec.Containers[0].Image, err)
	}
	// There is no node for the manager here.
	if code, _, errs := bootstrapped(t, append(args, "--wait", "1s")...); code != errcode.Timeout.Exit ||
		!strings.Contains(errs, manager.ErrManagerNotReady.Name) {
		t.Errorf("waited for a manager that does not come: exit code %d, %s", code, errs)
	}
}

// deleteDeployments deletes Deployments, which other tests would take for those of their own managers.
func deleteDeployments(t *testing.T, c client.Client, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := c.Delete(context.WithoutCancel(t.Context()), d); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
}

func bootstrapScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(s), apiextensionsv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}
