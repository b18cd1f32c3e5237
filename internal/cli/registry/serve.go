package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/cluster"
	"github.com/xpkg-dev/xpkg/internal/registry/pages"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	// stopTime is the maximum time that a stop waits for requests.
	stopTime = 10 * time.Second
)

type serveCmd struct {
	Folder        string       `name:"dir" required:"" placeholder:"DIR" help:"Folder of the server: the packages, the tokens, the configuration access.yaml, and caches. It is created if it does not exist."`
	Listen        string       `default:"127.0.0.1:5000" placeholder:"HOST:PORT" help:"Address to listen on. Default is 127.0.0.1:5000."`
	Host          string       `placeholder:"HOST" help:"Host in the references of the packages. Default is the address, or the backend."`
	URL           string       `name:"url" placeholder:"URL" help:"Address of the server for clients, such as https://registry.example.org, if a proxy is in front of it."`
	TLSCert       string       `name:"tls-cert" placeholder:"FILE" help:"Certificate of the server (PEM)."`
	TLSKey        string       `name:"tls-key" placeholder:"FILE" help:"Private key of the certificate (PEM)."`
	Backend       string       `placeholder:"HOST" help:"Serve the packages of this registry instead of a folder. The server needs credentials for it."`
	Repository    []string     `placeholder:"REPOSITORY" help:"With --backend, repository to index, for a registry that does not list its repositories. Can be given more than once."`
	PublishIndex  bool         `help:"With --backend, publish the index in that registry as index:main. Of several such servers in a cluster, one publishes. A server with a folder always does so."`
	Texts         bool         `default:"true" negatable:"" help:"Add field names, descriptions and readmes to the index, for searching them. This reads the whole newest version of each package."`
	SignKey       string       `placeholder:"FILE" help:"Private key that signs the published index (PEM): ECDSA with the curve P-256, or Ed25519."`
	MaxUploadSize flags.Amount `default:"4GiB" placeholder:"N" help:"Largest blob that the server accepts."`
	flags.RegistryFlags
}

// Run serves until the command is interrupted.
func (c *serveCmd) Run(env *terminal.Env) error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return terminal.ErrUsage.New(nil, "--tls-cert and --tls-key belong together")
	}
	certificates, err := c.certificates()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(env.Context, "tcp", c.Listen)
	if err != nil {
		return registry.ErrServer.New(err, "cannot listen on %s", c.Listen)
	}
	log := slog.New(slog.NewTextHandler(env.Stderr, nil))
	server, err := c.open(env.Context, listener.Addr().String(), log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return errors.Join(c.serve(env, listener, certificates, server, log), server.Close())
}

// certificates returns the certificate of the server; none for plain HTTP.
func (c *serveCmd) certificates() ([]tls.Certificate, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, registry.ErrServer.New(err, "cannot use the certificate %s with the key %s", c.TLSCert, c.TLSKey).
			WithDo("Name files in PEM format: the certificate with --tls-cert, and its private key with --tls-key.")
	}
	return []tls.Certificate{pair}, nil
}

func (c *serveCmd) open(ctx context.Context, address string, log *slog.Logger) (*registry.Server, error) {
	o := registry.Options{Dir: c.Folder, Host: c.Host, URL: c.URL, MaxUpload: int64(
		c.MaxUploadSize,
	), Log: log, Pages: pages.New, Texts: c.Texts}
	if err := c.checkRepositories(); err != nil {
		return nil, err
	}
	if c.Backend != "" {
		backend, err := c.backend(ctx)
		if err != nil {
			return nil, err
		}
		o.Backend = backend
	}
	if c.SignKey != "" {
		text, err := flags.ReadFile(ctx, "the key that signs the index", c.SignKey)
		if err != nil {
			return nil, err
		}
		if o.Signer, err = indexer.ParseSigner(text); err != nil {
			return nil, err
		}
	}
	if o.Host == "" {
		o.Host = address
		if c.Backend != "" {
			o.Host = c.Backend
		}
	}
	return registry.New(o)
}

// checkRepositories fails unless --repository names repositories of the backend.
func (c *serveCmd) checkRepositories() error {
	if c.Backend == "" && (len(c.Repository) > 0 || c.PublishIndex) {
		return terminal.ErrUsage.New(nil, "--repository and --publish-index need --backend").
			WithDo("Name the registry behind the server with --backend, such as --backend ghcr.io.")
	}
	for _, r := range c.Repository {
		if !access.ValidRepository(r) || strings.HasPrefix(r, c.Backend+"/") {
			return terminal.ErrUsage.New(nil, "--repository %q is not a repository of the backend", r).
				WithDo("Write it without the host and without a tag, such as acme/boats.")
		}
	}
	return nil
}

// backend returns the options for the registry behind the server.
func (c *serveCmd) backend(ctx context.Context) (*registry.BackendOptions, error) {
	host, err := flags.ParseHost(c.Backend)
	if err != nil {
		return nil, err
	}
	o, err := c.Options(ctx, oci.Limits{}, nil, host)
	if err != nil {
		return nil, err
	}
	settings := o.Hosts[flags.APIHost(host)]
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // The type is documented.
	transport.TLSClientConfig = &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs, InsecureSkipVerify: settings.SkipVerify,
	}
	if settings.RootCAs != nil {
		transport.TLSClientConfig.RootCAs = settings.RootCAs
	}
	in, err := cluster.Detect()
	if err != nil {
		return nil, registry.ErrServer.New(err, "cannot use the ServiceAccount of the Pod").
			WithDo(
				"Mount the token of its ServiceAccount, or none (automountServiceAccountToken: false) if this is the only server in front of %s.",
				host,
			)
	}
	return &registry.BackendOptions{
		Host: host, Repositories: c.Repository, PublishIndex: c.PublishIndex, Cluster: in, Remote: o,
		PlainHTTP: settings.PlainHTTP, Transport: transport,
	}, nil
}

// serve serves requests and updates the index until the context ends.
func (c *serveCmd) serve(
	env *terminal.Env, listener net.Listener, certificates []tls.Certificate, handler *registry.Server, log *slog.Logger,
) error {
	server := &http.Server{
		Handler:   handler,
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certificates},
	}
	ctx, cancel := context.WithCancel(env.Context)
	defer cancel()
	indexing, served := make(chan error, 1), make(chan error, 1)
	go func() {
		defer cancel() // It ends before the context only if it fails.
		indexing <- handler.Run(ctx)
	}()
	go func() { served <- handler.Serve(server, listener) }()
	if err := c.announce(env, listener.Addr().String()); err != nil {
		return err
	}
	var err error
	select {
	case <-ctx.Done():
		stop, end := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer end()
		if err = server.Shutdown(stop); errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
	case err = <-served:
		err = registry.ErrServer.New(err, "cannot serve on %s", c.Listen)
	}
	cancel()
	return errors.Join(err, <-indexing)
}

func (c *serveCmd) announce(env *terminal.Env, address string) error {
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	if _, err := fmt.Fprintf(
		env.Stdout, "Serving %s on %s://%s\n", terminal.Safe(c.source()), scheme, address,
	); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.Folder, "tokens.json")); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(
			env.Stderr,
			"There is no token yet, so no client can push. Run `xpkg registry token create --dir %s --repository '*' --action publish-new`.\n",
			terminal.Safe(wording.ShellWord(c.Folder)),
		)
	}
	return nil
}

func (c *serveCmd) source() string {
	if c.Backend != "" {
		return "the packages of " + c.Backend
	}
	return c.Folder
}
