// Package flags declares the flags that commands of several groups share: registries,
// limits, the package cache and the data directory.
package flags

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cloudidentity"
	"github.com/xpkg-dev/xpkg/internal/credentials"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// DefaultRegistry is the registry of references without one (packages guide, "Pushing a Package"). It is
// always printed.
const DefaultRegistry = "docker.io"

// ErrCAFile is the code for an invalid file of CA certificates.
var ErrCAFile = errcode.Code{
	Name: "CAFile", Class: errcode.Usage,
	Cause: "A file of CA certificates cannot be read, contains no certificate, or has an invalid registry.",
	Fix:   "Use a PEM file, such as --ca-file ca.pem or --ca-file registry.example.com=ca.pem.",
}

// ParseReference parses a reference in a command line. The error of a reference without a tag says how to find one, and
// that of a version after @, as several commands accept it, how a reference names it.
func ParseReference(s string) (oci.Reference, error) {
	ref, err := oci.ParseReference(s, oci.ParseOptions{DefaultRegistry: DefaultRegistry})
	var failed *errcode.Error
	if !errors.As(err, &failed) {
		return ref, err
	}
	repository, tag, _ := strings.Cut(s, "@")
	untagged, other := oci.ParseReference(repository, oci.ParseOptions{
		DefaultRegistry: DefaultRegistry, AllowUntagged: true,
	})
	switch {
	case other != nil || untagged.Tag != "" || !untagged.Digest.IsZero():
		return ref, err
	case tag != "":
		if _, other := oci.ParseReference(repository+":"+
			tag, oci.ParseOptions{DefaultRegistry: DefaultRegistry}); other == nil {
			return ref, failed.WithDo("Write the tag after a colon: %s:%s", repository, tag)
		}
		return ref, err
	case strings.Contains(s, "@"):
		return ref, err
	}
	return ref,
		failed.WithDo("Write the reference with its tag, as in %s:v1.0.0; `xpkg versions %s` lists the tags.", s, s)
}

// TrustFlags configures the transport of registries.
type TrustFlags struct {
	Insecure []string `placeholder:"HOST" config:"" help:"Use plain HTTP for this registry. Loopback registries use HTTP unless --ca-file names them."`
	CAFile   []string `name:"ca-file" placeholder:"[HOST=]FILE" config:"" help:"Certificate authorities (PEM): with HOST, trusted for this registry in place of the system's; without it, trusted for all registries beside the system's. A loopback registry uses TLS only if HOST names it."`
}

// RegistryFlags configures access to registries.
type RegistryFlags struct {
	TrustFlags
	InsecureSkipTLSVerify bool `name:"insecure-skip-tls-verify" help:"Skip TLS certificate verification for the registries of the command."`

	// Keychain returns the credentials for registries; nil selects the credentials of the user.
	Keychain authn.Keychain `kong:"-"`
}

// Remote returns a client of registries with the user's own credentials, for a command that accesses these
// registries.
func (f RegistryFlags) Remote(
	ctx context.Context, limits oci.Limits, moving func(remote.Transfer), registries ...string,
) (*remote.Client, error) {
	opts, err := f.Options(ctx, limits, moving, registries...)
	if err != nil {
		return nil, err
	}
	return remote.New(opts), nil
}

// Options returns the options of a registry client.
func (f RegistryFlags) Options(
	ctx context.Context, limits oci.Limits, moving func(remote.Transfer), registries ...string,
) (remote.Options, error) {
	hosts, roots, err := f.Hosts(ctx, registries)
	if err != nil {
		return remote.Options{}, err
	}
	keychain := f.Keychain
	if keychain == nil {
		keychain = credentials.User{}
	}
	return remote.Options{
		// An identity of a cloud is used where no credentials are configured.
		Keychain:  remote.FirstKeychain(keychain, cloudidentity.New(cloudidentity.Options{RootCAs: roots})),
		UserAgent: "xpkg/" + version.Version, Hosts: hosts, RootCAs: roots, Limits: limits, Progress: moving,
	}, nil
}

// Hosts returns the settings of single registries, and the root CAs for all others; nil means the system's.
func (f RegistryFlags) Hosts(
	ctx context.Context, registries []string,
) (_ map[string]remote.HostOptions, roots *x509.CertPool, _ error) {
	hosts := map[string]remote.HostOptions{}
	change := func(host string, set func(*remote.HostOptions)) {
		o := hosts[host]
		set(&o)
		hosts[host] = o
	}
	if f.InsecureSkipTLSVerify {
		for _, r := range registries {
			change(APIHost(r), func(o *remote.HostOptions) { o.SkipVerify = true })
		}
	}
	for _, entry := range f.CAFile {
		host, raw, err := readCAFile(ctx, entry)
		if err != nil {
			return nil, nil, err
		}
		if host == "" {
			if roots == nil {
				roots = systemRoots()
			}
			roots.AppendCertsFromPEM(raw)
			continue
		}
		change(APIHost(host), func(o *remote.HostOptions) {
			if o.RootCAs == nil {
				o.RootCAs = x509.NewCertPool()
			}
			o.RootCAs.AppendCertsFromPEM(raw)
		})
	}
	for _, h := range f.Insecure {
		name, err := ParseHost(h)
		if err != nil {
			return nil, nil, err
		}
		change(APIHost(name), func(o *remote.HostOptions) { o.PlainHTTP = true })
	}
	return hosts, roots, nil
}

// systemRoots returns the CA certificates of the system; or none if they cannot be read.
func systemRoots() *x509.CertPool {
	if pool, err := x509.SystemCertPool(); err == nil {
		return pool
	}
	return x509.NewCertPool()
}

// readCAFile reads FILE or HOST=FILE, and returns the host, which is empty for a
// bare FILE, and the certificates.
func readCAFile(ctx context.Context, entry string) (host string, raw []byte, err error) {
	file := entry
	if named, rest, ok := strings.Cut(entry, "="); ok && !strings.ContainsAny(named, `/\`) {
		if host, err = ParseHost(named); err != nil {
			return "", nil, err
		}
		file = rest
	}
	if raw, err = fileutil.ReadFile(ctx, file); err != nil {
		return "", nil, ErrCAFile.New(err, "cannot read the CA certificates")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(raw) {
		return "", nil, ErrCAFile.New(errors.New("it contains no certificate"), "cannot use %s", file)
	}
	return host, raw, nil
}

// ParseHost returns the canonical form of a registry's host.
func ParseHost(host string) (string, error) {
	ref, err := oci.ParseReference(host+"/any", oci.ParseOptions{AllowUntagged: true})
	if err != nil || ref.Repository != "any" {
		return "", terminal.ErrUsage.New(nil, "%q is not the host of a registry", host).
			WithDo("Write it as in references, such as registry.example.com or 127.0.0.1:5000.")
	}
	return ref.Registry, nil
}

// APIHost returns the host to which requests for a registry are sent. Docker Hub uses different hosts in
// references and for requests.
func APIHost(registry string) string {
	if registry == DefaultRegistry {
		return DockerHubHost
	}
	return registry
}

// DockerHubHost is the host of Docker Hub in a keychain.
const DockerHubHost = "index.docker.io"
