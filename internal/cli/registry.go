package cli

import (
	"crypto/x509"
	"errors"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// ErrCAFile is the failure of a file of certificates that cannot be used.
var ErrCAFile = errcode.Code{
	Name: "CAFile", Class: errcode.Usage,
	Cause: "A file of certificate authorities cannot be read, holds no certificate, or is for no registry.",
	Fix:   "Name a PEM file, as --ca-file FILE or --ca-file HOST=FILE.",
}

// parseReference reads a reference that a user wrote.
func parseReference(s string) (oci.Reference, error) {
	return oci.ParseReference(s, oci.ParseOptions{DefaultRegistry: defaultRegistry})
}

// registryFlags say how registries are spoken to. What is said without a host
// holds for the registries that the command names.
type registryFlags struct {
	Insecure              []string `placeholder:"HOST" help:"Use plain HTTP for this registry. Loopback registries use HTTP unless a CA is given."`
	CAFile                []string `name:"ca-file" placeholder:"[HOST=]FILE" help:"Certificate authorities (PEM) to trust for a registry in place of the system's. Without HOST, they are for the registry of the command; if it has none or several, they are trusted beside the system's, and loopback registries still use plain HTTP."`
	InsecureSkipTLSVerify bool     `name:"insecure-skip-tls-verify" help:"Speak TLS to the registries that are named, and accept any certificate."`

	// keychain returns the credentials for registries; nil means those of the user.
	keychain authn.Keychain
}

// remote is a client of registries with the user's own credentials, for a command
// that names these registries.
func (f registryFlags) remote(limits oci.Limits, moving func(remote.Transfer), registries ...string) (*remote.Client, error) {
	opts, err := f.options(limits, moving, registries...)
	if err != nil {
		return nil, err
	}
	return remote.New(opts), nil
}

// options are what such a client is made of.
func (f registryFlags) options(limits oci.Limits, moving func(remote.Transfer), registries ...string) (remote.Options, error) {
	hosts, roots, err := f.hosts(registries)
	if err != nil {
		return remote.Options{}, err
	}
	keychain := f.keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	return remote.Options{
		Keychain: keychain, UserAgent: "xpkg/" + Version,
		Hosts: hosts, RootCAs: roots, Limits: limits, Progress: moving,
	}, nil
}

// hosts returns the settings of single registries, and the authorities that are
// trusted for all others; nil means the system's. Authorities without a host belong to
// the registry of the command if it names exactly one. With none or several they are
// added to the system's, and no loopback registry uses TLS because of them.
func (f registryFlags) hosts(registries []string) (_ map[string]remote.HostOptions, roots *x509.CertPool, _ error) {
	hosts := map[string]remote.HostOptions{}
	change := func(host string, set func(*remote.HostOptions)) {
		o := hosts[host]
		set(&o)
		hosts[host] = o
	}
	if f.InsecureSkipTLSVerify {
		for _, r := range registries {
			change(apiHost(r), func(o *remote.HostOptions) { o.SkipVerify = true })
		}
	}
	for _, entry := range f.CAFile {
		host, raw, err := readCAFile(entry)
		if err != nil {
			return nil, nil, err
		}
		if host == "" && len(registries) == 1 {
			host = registries[0]
		}
		if host == "" {
			if roots == nil {
				roots = systemRoots()
			}
			roots.AppendCertsFromPEM(raw)
			continue
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(raw)
		change(apiHost(host), func(o *remote.HostOptions) { o.RootCAs = pool })
	}
	for _, h := range f.Insecure {
		name, err := parseHost(h)
		if err != nil {
			return nil, nil, err
		}
		change(apiHost(name), func(o *remote.HostOptions) { o.PlainHTTP = true })
	}
	return hosts, roots, nil
}

// systemRoots returns the authorities of the system; none where they cannot be read.
func systemRoots() *x509.CertPool {
	if pool, err := x509.SystemCertPool(); err == nil {
		return pool
	}
	return x509.NewCertPool()
}

// readCAFile reads FILE or HOST=FILE, and returns the host, which is empty for a
// bare FILE, and the certificates.
func readCAFile(entry string) (host string, raw []byte, err error) {
	file := entry
	if named, rest, ok := strings.Cut(entry, "="); ok && !strings.ContainsAny(named, `/\`) {
		if host, err = parseHost(named); err != nil {
			return "", nil, err
		}
		file = rest
	}
	if raw, err = os.ReadFile(file); err != nil {
		return "", nil, ErrCAFile.New(err, "cannot read the certificate authorities")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(raw) {
		return "", nil, ErrCAFile.New(errors.New("it holds no certificate"), "cannot use %s", file)
	}
	return host, raw, nil
}

// parseHost gives the one spelling of a registry's host.
func parseHost(host string) (string, error) {
	ref, err := oci.ParseReference(host+"/any", oci.ParseOptions{AllowUntagged: true})
	if err != nil || ref.Repository != "any" {
		return "", ErrUsage.New(nil, "%q is not the host of a registry", host).
			WithDo("Write HOST or HOST:PORT, as it stands in references.")
	}
	return ref.Registry, nil
}

// apiHost is the host that a registry's requests go to. Docker Hub has a name for
// references and another one for requests.
func apiHost(registry string) string {
	if registry == defaultRegistry {
		return dockerHubHost
	}
	return registry
}

// dockerHubHost is the name under which credentials for Docker Hub are asked for.
const dockerHubHost = "index.docker.io"
