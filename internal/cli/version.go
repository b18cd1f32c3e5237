package cli

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/version"
)

type versionCmd struct {
	Server bool `help:"Show the versions of the Kubernetes API server and of the manager too."`
	connection.ClusterFlags
	view.OutputFlag
}

// versionInfo has the versions of the command and, on request, of a cluster.
type versionInfo struct {
	Client version.Info   `json:"client"`
	Server *serverVersion `json:"server,omitempty"`
}

// serverVersion describes a cluster. Manager is empty if no manager has announced its version.
type serverVersion struct {
	Kubernetes string `json:"kubernetes"`
	Manager    string `json:"manager,omitempty"`
}

// Run prints the version. It contacts no cluster unless --server is set.
func (c versionCmd) Run(env *terminal.Env) error {
	out := versionInfo{Client: version.Get()}
	if c.Server {
		server, err := c.readServer(env.Context)
		if err != nil {
			return err
		}
		out.Server = server
	}
	return c.Print(env.Stdout, out, out.write)
}

func (v versionInfo) write(w io.Writer) {
	fmt.Fprintf(w, "xpkg %s (%s, %s)\n", v.Client.Version, v.Client.GoVersion, v.Client.Platform)
	if v.Server == nil {
		return
	}
	manager := v.Server.Manager
	if manager == "" {
		manager = "not found"
	}
	fmt.Fprintf(w, "Manager %s\nKubernetes %s\n", terminal.Safe(manager), terminal.Safe(v.Server.Kubernetes))
}

func (c versionCmd) readServer(ctx context.Context) (*serverVersion, error) {
	cfg, err := c.Config(ctx)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, apiserver.Classify(err, "read the version of the API server")
	}
	kubernetes, err := d.ServerVersion()
	if err != nil {
		return nil, apiserver.Classify(err, "read the version of the API server")
	}
	out := &serverVersion{Kubernetes: kubernetes.GitVersion}
	cluster, err := c.Client(ctx)
	if err != nil {
		return nil, err
	}
	lock := &v1beta1.Lock{}
	// A cluster that does not serve the package API has no manager.
	if err := cluster.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, lock); client.IgnoreNotFound(err) != nil {
		return nil, apiserver.Classify(err, "read the Lock")
	}
	out.Manager = lock.Annotations[version.AnnotationManager]
	return out, nil
}
