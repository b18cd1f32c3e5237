package up

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/up/registry"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// usesLimit is the maximum time that a push waits for the list of packages.
const usesLimit = 5 * time.Second

// installedUses returns a function that lists the references of all packages of a cluster to the
// registry of this machine.
func installedUses(kubeconfig string) registry.Uses {
	return func(ctx context.Context, host string) ([]registry.Use, error) {
		ctx, cancel := context.WithTimeout(ctx, usesLimit)
		defer cancel()
		scheme, err := apis.NewScheme()
		if err != nil {
			return nil, err
		}
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, err
		}
		config.APIPath, config.GroupVersion = "/apis", &v1.GroupVersion
		config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		c, err := rest.RESTClientFor(config)
		if err != nil {
			return nil, err
		}
		var uses []registry.Use
		for _, kind := range v1.PackageKinds() {
			list := v1.NewPackageList(kind)
			err := c.Get().Resource(strings.ToLower(kind) + "s").Do(ctx).Into(list)
			if apierrors.IsNotFound(err) {
				continue // The manager has not installed the package API yet.
			}
			if err != nil {
				return nil, fmt.Errorf("cannot list packages of kind %s: %w", kind, err)
			}
			for _, p := range list.Packages() {
				uses = append(uses, usesOf(p, host)...)
			}
		}
		return uses, nil
	}
}

// usesOf returns the references of a package to a registry at a port of this machine: the reference
// in its spec, and the reference after rewriting by ImageConfigs.
func usesOf(p v1.Package, host string) []registry.Use {
	references := []string{p.PackageSpec().Package}
	if resolved := p.PackageStatus().ResolvedPackage; resolved != references[0] {
		references = append(references, resolved)
	}
	var uses []registry.Use
	for _, reference := range references {
		ref, err := oci.ParseReference(reference, oci.ParseOptions{})
		if err != nil || !isSameLoopback(ref.Registry, host) {
			continue
		}
		use := registry.Use{
			Package: v1.ObjectName(p.PackageKind(), p.GetName()), Repository: ref.Repository, Tag: ref.Tag,
			Follows: p.PackageSpec().PackagePullPolicy == corev1.PullAlways,
		}
		if !ref.Digest.IsZero() {
			use.Digest = ref.Digest.String()
		}
		uses = append(uses, use)
	}
	return uses
}

// isSameLoopback reports whether two registries have the same port on this machine.
func isSameLoopback(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && portA == portB && oci.IsLoopback(hostA) && oci.IsLoopback(hostB)
}
