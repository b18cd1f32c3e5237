package cli

import (
	"crypto/x509"
	"errors"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// ErrCAFile is the failure of a file of certificates that cannot be used.
var ErrCAFile = failure.Register(failure.Code{
	Name: "CAFile", Class: failure.Usage,
	Cause: "A file of certificate authorities cannot be read, holds no certificate, or is for no registry.",
	Fix:   "Name a PEM file, as --ca-file FILE or --ca-file HOST=FILE.",
})

// parseReference reads a reference that a user wrote.
func parseReference(s string) (oci.Reference, error) {
	return oci.ParseReference(s, oci.ParseOptions{DefaultRegistry: defaultRegistry})
}

// registryFlags say how registries are spoken to. What is said without a host
// holds for the registries that the command names.
type registryFlags struct {
	Insecure              []string `placeholder:"HOST" help:"Registry to speak to in plain HTTP, without TLS. Registries on this machine are spoken to that way anyhow."`
	CAFile                []string `name:"ca-file" placeholder:"[HOST=]FILE" help:"Certificate authorities (PEM) to trust for a registry in place of the system's."`
	InsecureSkipTLSVerify bool     `name:"insecure-skip-tls-verify" help:"Speak TLS to the registries that are named, and accept any certificate."`
}

// remote is a client of registries with the user's own credentials, for a command
// that names these registries.
func (f registryFlags) remote(limits oci.Limits, moving func(oci.Transfer), registries ...string) (*oci.Remote, error) {
	opts, err := f.options(limits, moving, registries...)
	if err != nil {
		return nil, err
	}
	return oci.NewRemote(opts), nil
}

// options are what such a client is made of.
func (f registryFlags) options(limits oci.Limits, moving func(oci.Transfer), registries ...string) (oci.RemoteOptions, error) {
	hosts, err := f.hosts(registries)
	if err != nil {
		return oci.RemoteOptions{}, err
	}
	return oci.RemoteOptions{
		Keychain: authn.DefaultKeychain, UserAgent: "xpkg/" + Version,
		Hosts: hosts, Limits: limits, Progress: moving,
	}, nil
}

// hosts gives the settings of single registries.
func (f registryFlags) hosts(registries []string) (map[string]oci.HostOptions, error) {
	hosts := map[string]oci.HostOptions{}
	change := func(host string, set func(*oci.HostOptions)) {
		o := hosts[host]
		set(&o)
		hosts[host] = o
	}
	if f.InsecureSkipTLSVerify {
		for _, r := range registries {
			change(apiHost(r), func(o *oci.HostOptions) { o.SkipVerify = true })
		}
	}
	for _, entry := range f.CAFile {
		pool, named, err := readCAFile(entry, registries)
		if err != nil {
			return nil, err
		}
		for _, r := range named {
			change(apiHost(r), func(o *oci.HostOptions) { o.RootCAs = pool })
		}
	}
	for _, h := range f.Insecure {
		name, err := parseHost(h)
		if err != nil {
			return nil, err
		}
		change(apiHost(name), func(o *oci.HostOptions) { o.PlainHTTP = true })
	}
	return hosts, nil
}

// readCAFile reads FILE or HOST=FILE, and says for which registries it is.
func readCAFile(entry string, registries []string) (*x509.CertPool, []string, error) {
	file := entry
	if host, rest, ok := strings.Cut(entry, "="); ok && !strings.ContainsAny(host, `/\`) {
		name, err := parseHost(host)
		if err != nil {
			return nil, nil, err
		}
		file, registries = rest, []string{name}
	}
	if len(registries) == 0 {
		return nil, nil, ErrCAFile.New(nil, "cannot tell for which registry %s is", file)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, ErrCAFile.New(err, "cannot read the certificate authorities")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, nil, ErrCAFile.New(errors.New("it holds no certificate"), "cannot use %s", file)
	}
	return pool, registries, nil
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
