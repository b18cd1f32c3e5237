package node_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	imagev1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/xpkg-dev/xpkg/internal/testing/prerequisite"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	// patience is the limit of each step on a busy machine. An idle machine needs a few seconds.
	patience  = 4 * time.Minute
	namespace = "crossplane-system"
	// registry is the registry of the node.
	registry = "10.99.0.1:5000"
	manager  = registry + "/xpkg-dev/xpkg"
)

// node is a cluster with one real node.
type node struct {
	*sandbox
	xpkg, kubectl string
}

// newNode starts a control plane, a registry and a node with the image of the manager. It needs root and programs of
// Debian's packages, which .ci/run installs.
func newNode(t *testing.T) *node {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a node: skipped with -short")
	}
	if os.Getuid() != 0 {
		prerequisite.Missing(t, "a node needs root")
	}
	for _, p := range []string{
		"containerd", "runc", "ctr", "docker-registry", "skopeo", "nsenter", "ip", "/usr/lib/cni/bridge",
	} {
		if _, err := exec.LookPath(p); err != nil {
			prerequisite.Missing(
				t,
				"%s is not installed: install containerd, runc, containernetworking-plugins, iproute2, docker-registry and skopeo",
				p,
			)
		}
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"xpkg-controlplane", "kubectl", "kubelet", "kube-scheduler"} {
		if _, err := os.Stat(filepath.Join(bin, p)); err != nil {
			t.Fatalf("%v: build it with: make build build-kubectl build-node", err)
		}
	}
	n := &node{newSandbox(t), program.Build(t), filepath.Join(bin, "kubectl")}
	for source, target := range map[string]string{
		"kubelet.yaml": "kubelet.yaml", "containerd.toml": "containerd.toml", "registry.yml": "registry.yml",
		"resolv.conf":   "resolv.conf",
		"pods.conflist": "cni/pods.conflist", "hosts.toml": "hosts/" + registry + "/hosts.toml",
	} {
		n.write(t, source, target)
	}
	n.start(
		t, filepath.Join(bin, "xpkg-controlplane"), "--data-dir", n.path("plane"), "--address", "10.0.0.1", "--port", "443",
		"--throwaway", "--stay",
	)
	n.start(t, "docker-registry", "serve", n.path("registry.yml"))
	n.start(t, "containerd", "--config", n.path("containerd.toml"))
	n.until(t, "the control plane is healthy", func() (string, bool) {
		return n.logs["xpkg-controlplane"].String(), strings.Contains(n.logs["xpkg-controlplane"].String(), `"healthy":true`)
	})
	n.until(t, "containerd serves", n.succeeds(t, "ctr", "--address", n.path("run", "containerd.sock"), "version"))
	n.importPause(t)
	n.start(
		t, filepath.Join(bin, "kube-scheduler"), "--kubeconfig", n.kubeconfig(), "--leader-elect=false", "--secure-port=0",
	)
	n.start(
		t, filepath.Join(bin, "kubelet"), "--config", n.path("kubelet.yaml"), "--kubeconfig", n.kubeconfig(),
		"--hostname-override", "10.99.0.1", "--node-ip", "10.99.0.1",
	)
	n.until(
		t, "the node is ready",
		n.prints(t, "True", "get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`),
	)
	n.pushManager(t)
	return n
}

// importPause builds the image that holds the namespaces of each Pod, and imports it into containerd.
func (n *node) importPause(t *testing.T) {
	t.Helper()
	binary := n.path("pause")
	compile(t, binary, "./testdata/pause")
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "pause", Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: staticLayer(t, layer.Bytes())})
	if err != nil {
		t.Fatal(err)
	}
	config := imagev1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}
	if image, err = mutate.ConfigFile(image, &imagev1.ConfigFile{
		OS: "linux", Architecture: runtime.GOARCH, Config: config, RootFS: rootFS(t, image),
	}); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("xpkg.test/pause:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(n.path("pause.tar"), tag, image); err != nil {
		t.Fatal(err)
	}
	n.run(
		t, "ctr", "--address", n.path("run", "containerd.sock"), "--namespace", "k8s.io", "images", "import",
		n.path("pause.tar"),
	)
}

// pushManager builds the image of the manager, and pushes it to the registry of the node.
func (n *node) pushManager(t *testing.T) {
	t.Helper()
	build := exec.CommandContext(
		t.Context(), "go", "run", ".", "-out", n.path("manager"), "-version", "v0.0.0-node", "-arch", runtime.GOARCH,
	)
	build.Dir = filepath.Join("..", "..", "tools", "image")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the image of the manager: %v\n%s", err, out)
	}
	n.run(t, "skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", "--all", "oci:"+n.path("manager")+
		":v0.0.0-node", "docker://"+manager+":v0.0.0-node")
}

// publish builds an example with its runtime, and pushes it with a version.
func (n *node) publish(t *testing.T, example, version string) string {
	t.Helper()
	folder, file, ref := filepath.Join("..", "..", "examples", example), n.path(example+"-"+version+".xpkg"), registry+
		"/examples/"+example+":"+version
	cmd := exec.CommandContext(
		t.Context(), n.xpkg, "build", "-f", filepath.Join(folder, "package"), "--embed-go-program",
		filepath.Join(folder, "cmd", example), "-o", file,
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", example, err, out)
	}
	n.run(t, n.xpkg, "push", "-f", file, ref, "--insecure", registry)
	return ref
}

// until waits for a condition. It fails at once when the sandbox has ended.
func (n *node) until(t *testing.T, condition string, holds func() (string, bool)) {
	t.Helper()
	wait.Until(t, patience, condition, holds)
}

// succeeds returns a condition that holds when a command succeeds.
func (n *node) succeeds(t *testing.T, command string, args ...string) func() (string, bool) {
	return func() (string, bool) {
		out, err := n.try(t, command, args...)
		return out, err == nil
	}
}

// prints returns a condition that holds when kubectl prints a text.
func (n *node) prints(t *testing.T, want string, args ...string) func() (string, bool) {
	return func() (string, bool) {
		out, err := n.try(t, n.kubectl, args...)
		return out, err == nil && out == want
	}
}

// apply applies a manifest.
func (n *node) apply(t *testing.T, manifest string) {
	t.Helper()
	file := n.path("manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	n.run(t, n.kubectl, "apply", "-f", file)
}

// pod is a Pod with the fields that the test reads.
type pod struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Status struct {
		Phase             string
		ContainerStatuses []struct {
			Image, ImageID string
			RestartCount   int
			Ready          bool
		}
	}
}

// pods returns the Pods of a package or of the manager.
func (n *node) pods(t *testing.T, selector string) []pod {
	t.Helper()
	var list struct{ Items []pod }
	if err := json.Unmarshal(
		[]byte(n.run(t, n.kubectl, "get", "pods", "--namespace", namespace, "--selector", selector, "-o", "json")), &list,
	); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func compile(t *testing.T, out, folder string) {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(), "go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w", "-o", out, folder,
	)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", folder, err, out)
	}
}

func staticLayer(t *testing.T, content []byte) imagev1.Layer {
	t.Helper()
	layer, err := tarball.LayerFromOpener(func() (
		io.ReadCloser, error,
	) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

func rootFS(t *testing.T, image imagev1.Image) imagev1.RootFS {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config.RootFS
}
