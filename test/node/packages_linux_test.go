package node_test

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/lane"
)

const plainHTTP = `apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: node}
spec:
  matchImages: [{prefix: "` + registry + `"}]
  registry: {plainHTTP: true}
`

const greeting = `apiVersion: hello.xpkg.dev/v1alpha1
kind: Greeting
metadata: {name: NAME}
spec: {name: NAME, language: fr}
`

// The manager and the runtimes of packages run as Pods of a real node, under the restrictions of their manifests: they
// are healthy, are restarted and upgraded, and end with their package.
func TestManagerAndPackagesRunAsPods(t *testing.T) {
	lane.Full(
		t, "internal/runtime/deployment.TestPodsFollowTheirAccount", "test/bootstrap.TestManagerRunsWithBootstrapManifests",
	)
	n := newNode(t)
	n.run(t, n.xpkg, "bootstrap", "--apply", "--image", manager+
		":v0.0.0-node", "--replicas", "2", "--package-group", "hello.xpkg.dev", "--wait", "4m")
	n.apply(t, plainHTTP)

	n.run(t, n.xpkg, "install", "provider", n.publish(t, "provider-hello", "v0.1.0"), "provider-hello", "--wait", "4m")
	n.run(t, n.xpkg, "install", "function", n.publish(t, "function-greet", "v0.1.0"), "function-greet", "--wait", "4m")
	first := n.onlyPod(t, "pkg.crossplane.io/provider=provider-hello")
	n.onlyPod(t, "pkg.crossplane.io/function=function-greet")
	n.greets(t, "world")
	if log := n.run(t, n.kubectl, "logs", "--namespace", namespace, first.Metadata.Name); log == "" {
		t.Error("the provider has an empty log")
	}

	// The kubelet restarts a killed program, and the Deployment replaces a deleted Pod.
	n.run(t, "sh", "-c", "kill -9 $(pidof provider-hello)")
	n.until(t, "the program is restarted", func() (string, bool) {
		p := n.pods(t, "pkg.crossplane.io/provider=provider-hello")
		return first.Metadata.Name, len(p) == 1 && len(p[0].Status.ContainerStatuses) == 1 &&
			p[0].Status.ContainerStatuses[0].RestartCount == 1 && p[0].Status.ContainerStatuses[0].Ready
	})
	n.greets(t, "again")

	// Another replica continues when the leader is gone.
	leader := n.leader(t)
	n.run(t, n.kubectl, "delete", "pod", "--namespace", namespace, leader, "--grace-period=0", "--force")
	n.run(
		t, n.xpkg, "update", "provider", "provider-hello", n.publish(t, "provider-hello", "v0.2.0"), "--yes", "--wait", "4m",
	)
	if n.leader(t) == leader {
		t.Errorf("%s still leads", leader)
	}
	if second := n.onlyPod(t, "pkg.crossplane.io/provider=provider-hello"); second.Metadata.Name == first.Metadata.Name {
		t.Errorf("the update kept Pod %s", first.Metadata.Name)
	}
	n.greets(t, "updated")

	n.run(t, n.kubectl, "delete", "greetings", "--all")
	n.run(t, n.xpkg, "uninstall", "provider", "provider-hello", "--yes", "--wait", "4m")
	n.run(t, n.xpkg, "uninstall", "function", "function-greet", "--yes", "--wait", "4m")
	n.until(
		t, "no Pod of a package is left",
		n.prints(t, "", "get", "pods", "--namespace", namespace, "--selector", "pkg.crossplane.io/revision", "-o", "name"),
	)
}

// onlyPod returns the Pod of a package, which runs with the verified digest, after all others have ended.
func (n *node) onlyPod(t *testing.T, selector string) pod {
	t.Helper()
	var last pod
	n.until(t, "one Pod runs", func() (string, bool) {
		all := n.pods(t, selector)
		if len(all) != 1 {
			return n.run(t, n.kubectl, "get", "pods", "--namespace", namespace, "-o", "wide"), false
		}
		last = all[0]
		return last.Status.Phase,
			last.Status.Phase == "Running" && len(last.Status.ContainerStatuses) == 1 && last.Status.ContainerStatuses[0].Ready
	})
	if image := last.Status.ContainerStatuses[0].ImageID; !strings.Contains(image, "@sha256:") {
		t.Errorf("Pod %s runs %s", last.Metadata.Name, image)
	}
	return last
}

// greets creates a Greeting, and waits until the provider has answered it.
func (n *node) greets(t *testing.T, name string) {
	t.Helper()
	n.apply(t, strings.ReplaceAll(greeting, "NAME", name))
	n.until(
		t, "the greeting is ready",
		n.prints(t, "Bonjour, "+name+"!", "get", "greeting", name, "-o", "jsonpath={.status.message}"),
	)
}

// leader returns the Pod of the manager that holds the Lease.
func (n *node) leader(t *testing.T) string {
	t.Helper()
	holder := n.run(
		t, n.kubectl, "get", "leases", "--namespace", namespace, "-o", "jsonpath={.items[*].spec.holderIdentity}",
	)
	for _, p := range n.pods(t, "app.kubernetes.io/name=xpkg") {
		if strings.Contains(holder, p.Metadata.Name) {
			return p.Metadata.Name
		}
	}
	t.Fatalf("no Pod of the manager holds the Lease: %s", holder)
	return ""
}
