// Command standincore behaves towards a control plane as Crossplane core does, without composing resources: its
// initialization applies CRDs and writes the objects that core writes before each start, and it then tries to write
// packages and establishes XRDs.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// The resources that the stand-in writes.
var (
	crds = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	locks   = schema.GroupVersionResource{Group: "pkg.crossplane.io", Version: "v1beta1", Resource: "locks"}
	configs = schema.GroupVersionResource{
		Group: "pkg.crossplane.io", Version: "v1beta1", Resource: "deploymentruntimeconfigs",
	}
	providers = schema.GroupVersionResource{Group: "pkg.crossplane.io", Version: "v1", Resource: "providers"}
	xrds      = schema.GroupVersionResource{
		Group: "apiextensions.crossplane.io", Version: "v2", Resource: "compositeresourcedefinitions",
	}
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	cluster, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	switch {
	case slices.Equal(args, []string{"core", "init", "--activation=*"}):
		return initialize(ctx, cluster)
	case len(args) > 2 && args[0] == "core" && args[1] == "start":
		return start(ctx, cluster, args[2:])
	}
	return fmt.Errorf("unexpected arguments %q", args)
}

// initialize applies the CRDs, and makes the writes of packages that the initialization of core makes. Like core
// v2.0.2, it needs the folder of webhook configurations unless WEBHOOK_ENABLED is false, whatever ENABLE_WEBHOOKS is.
func initialize(ctx context.Context, cluster dynamic.Interface) error {
	if _, err := os.Stat("/webhookconfigurations"); err != nil && os.Getenv("WEBHOOK_ENABLED") != "false" {
		return err
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv("CRDS_PATH"), "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &crd.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(bytes.TrimSpace(content)) == 0 {
			continue
		}
		fmt.Println("apply", crd.GetName())
		if _, err := cluster.Resource(crds).
			Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "stand-in", Force: true}); err != nil {
			return err
		}
	}
	lock := []byte(`{"apiVersion":"pkg.crossplane.io/v1beta1","kind":"Lock","metadata":{"name":"lock"}}`)
	if _, err := cluster.Resource(locks).
		Patch(ctx, "lock", types.MergePatchType, lock, metav1.PatchOptions{}); err != nil {
		return err
	}
	_, err = cluster.Resource(configs).
		Create(ctx, object("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig", "default"), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// start serves the readiness check, tries to write packages, and establishes XRDs.
func start(ctx context.Context, cluster dynamic.Interface, args []string) error {
	if !slices.Contains(args, "--package-runtime=External") {
		return errors.New("package runtimes are not external")
	}
	for _, name := range []string{"TLS_SERVER_CERTS_DIR", "TLS_CLIENT_CERTS_DIR"} {
		dir := os.Getenv(name)
		if _, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fmt.Println("arguments", args)
	go serve("127.0.0.1:" + valueOf(args, "--health-probe-port"))
	for {
		_, err := cluster.Resource(providers).
			Create(ctx, object("pkg.crossplane.io/v1", "Provider", "of-core"), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "xpkg manages the packages") {
			fmt.Println("a write of packages is not denied:", err)
		}
		if err := establish(ctx, cluster); err != nil {
			fmt.Println("establish:", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// serve serves the readiness check.
func serve(address string) {
	server := &http.Server{
		Addr: address, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	}
	fmt.Println(server.ListenAndServe())
	os.Exit(1)
}

// establish creates the CRDs of all XRDs, and sets their condition when it may read their resources, as core does.
func establish(ctx context.Context, cluster dynamic.Interface) error {
	list, err := cluster.Resource(xrds).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var failures []error
	for _, xrd := range list.Items {
		if conditions, _, _ := unstructured.NestedSlice(xrd.Object, "status", "conditions"); len(conditions) > 0 {
			continue
		}
		failures = append(failures, establishOne(ctx, cluster, xrd))
	}
	return errors.Join(failures...)
}

func establishOne(ctx context.Context, cluster dynamic.Interface, xrd unstructured.Unstructured) error {
	resource, err := define(ctx, cluster, xrd)
	if err != nil {
		return err
	}
	if _, err := cluster.Resource(resource).List(ctx, metav1.ListOptions{}); err != nil {
		return err
	}
	condition := map[string]any{
		"type": "Established", "status": "True", "reason": "WatchingCompositeResource",
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}
	if err := unstructured.SetNestedSlice(xrd.Object, []any{condition}, "status", "conditions"); err != nil {
		return err
	}
	_, err = cluster.Resource(xrds).UpdateStatus(ctx, &xrd, metav1.UpdateOptions{})
	return err
}

// define creates the CRD of an XRD, and returns its resource.
func define(
	ctx context.Context, cluster dynamic.Interface, xrd unstructured.Unstructured,
) (resource schema.GroupVersionResource, err error) {
	spec, _, err := unstructured.NestedMap(xrd.Object, "spec")
	if err != nil {
		return resource, err
	}
	versions, _, err := unstructured.NestedSlice(spec, "versions")
	if err != nil {
		return resource, err
	}
	for _, v := range versions {
		version := v.(map[string]any)
		version["storage"] = version["referenceable"]
		delete(version, "referenceable")
		resource.Version = version["name"].(string)
	}
	resource.Resource, resource.Group, _ = strings.Cut(xrd.GetName(), ".")
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", xrd.GetName())
	crd.Object["spec"] = map[string]any{
		"group": spec["group"], "names": spec["names"], "scope": spec["scope"], "versions": versions,
	}
	_, err = cluster.Resource(crds).
		Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "stand-in", Force: true})
	return resource, err
}

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name},
	}}
}

// valueOf returns the value of a flag.
func valueOf(args []string, flag string) string {
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}
