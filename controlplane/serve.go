package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"

	"github.com/xpkg-dev/xpkg/controlplane/internal/datadir"
	"github.com/xpkg-dev/xpkg/controlplane/internal/inventory"
	"github.com/xpkg-dev/xpkg/controlplane/internal/pki"
	"github.com/xpkg-dev/xpkg/controlplane/internal/report"
	"github.com/xpkg-dev/xpkg/controlplane/internal/settings"
)

// The time that a stop waits for the controllers and for the API server. Requests may take a minute, which is longer
// than a stop should wait.
const (
	controllersGrace = 500 * time.Millisecond
	apiServerGrace   = 1500 * time.Millisecond
)

// serve runs the control plane until the context ends. It calls serving once, when the API server answers, and then
// healthy, when all its checks have passed and the controllers work.
func serve(
	ctx context.Context, s settings.Settings, serving func(report.Ready) error, healthy func() error,
) (err error) {
	dir, err := datadir.Open(s.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave(dir, s.Throwaway)) }()
	listener, err := dir.Listen(s.Address, s.Port)
	if err != nil {
		return err
	}
	defer listener.Close()
	server := "https://" + listener.Addr().String()
	files, managerConfig, err := writeCredentials(dir, listener.Addr().(*net.TCPAddr).IP, server)
	if err != nil {
		return report.Fail(report.DataDirUnusable, err, "cannot write keys and certificates")
	}

	admission, err := writeAdmission(s.DataDir, s.Policies)
	if err != nil {
		return report.Fail(report.DataDirUnusable, err, "cannot write the configuration of admission")
	}
	store, err := startEtcd(ctx, dir.Etcd(), s.Throwaway)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return report.Fail(report.StartFailed, err, "cannot start etcd")
	}
	defer store.Close()

	api := startComponent(ctx, "API server", apiServer{listener, files, s.CRDOpenAPI, admission}.run)
	defer api.stop(apiServerGrace)
	client, err := newClient(dir.Kubeconfig())
	if err != nil {
		return err
	}
	if err := await(ctx, client.serves, api); err != nil {
		return startError(err, "the API server did not start")
	}
	line := report.Ready{
		Server: server, Kubeconfig: dir.Kubeconfig(), Kubernetes: version.Get().GitVersion, PID: os.Getpid(),
	}
	if err := serving(line); err != nil {
		return err
	}
	// The controllers wait for all checks too, in steps of a second.
	if err := await(ctx, client.ready, api); err != nil {
		return startError(err, "the API server did not become ready")
	}

	stock := inventory.New()
	parts := []*component{
		api,
		startComponent(ctx, "inventory", func(ctx context.Context) error { return follow(ctx, store.Server.KV(), stock) }),
		startComponent(ctx, "garbage collector", collector{managerConfig, stock}.run),
		startComponent(ctx, "controllers", controllerManager{managerConfig, files.CA}.run),
	}
	defer stopAll(parts[1:], controllersGrace)
	if err := await(ctx, client.hasDefaultAccount, parts...); err != nil {
		return startError(err, "the controllers did not start")
	}
	if err := healthy(); err != nil {
		return err
	}
	database := startComponent(ctx, "etcd", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-store.Err():
			return err
		}
	})
	defer database.stop(0)
	return supervise(ctx, append(parts, database)...)
}

// leave releases the data directory after everything has stopped. It also leaves it as the working directory, which
// some systems do not allow to be removed.
func leave(dir *datadir.Dir, throwaway bool) error {
	if !throwaway {
		return dir.Close()
	}
	return errors.Join(os.Chdir(os.TempDir()), dir.Remove(), dir.Close())
}

// startError returns nil for a process that received a signal to stop during its start.
func startError(err error, what string) error {
	if errors.Is(err, errStopped) {
		return nil
	}
	return report.Fail(report.StartFailed, err, "%s", what)
}

// writeCredentials creates the keys and certificates, and one kubeconfig each for the administrator and the
// controllers. It returns their paths.
func writeCredentials(dir *datadir.Dir, address net.IP, server string) (pki.Files, string, error) {
	files, err := pki.Ensure(dir.PKI(), address, serviceIP, time.Now())
	if err != nil {
		return files, "", err
	}
	managerConfig := filepath.Join(dir.PKI(), "controllers.kubeconfig")
	return files, managerConfig, errors.Join(
		pki.WriteKubeconfig(dir.Kubeconfig(), server, files, files.Admin),
		pki.WriteKubeconfig(managerConfig, server, files, files.Controllers),
	)
}

// A client asks the control plane about itself.
type client struct{ kubernetes.Interface }

func newClient(kubeconfig string) (client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return client{}, err
	}
	config.UserAgent = "xpkg-controlplane"
	config.Timeout = 5 * time.Second
	c, err := kubernetes.NewForConfig(config)
	return client{c}, err
}

// serves reports whether every check of the API server passes, except for the creation of the default roles and
// priority classes, which begins a second after the API server serves.
func (c client) serves(ctx context.Context) bool {
	return c.check(ctx, "poststarthook/rbac/bootstrap-roles", "poststarthook/scheduling/bootstrap-system-priority-classes")
}

// ready reports whether every check of the API server passes.
func (c client) ready(ctx context.Context) bool { return c.check(ctx) }

// check reports whether the checks of the API server pass, except for some of them.
func (c client) check(ctx context.Context, except ...string) bool {
	request := c.Discovery().RESTClient().Get().AbsPath("/readyz")
	for _, name := range except {
		request.Param("exclude", name)
	}
	status := 0
	request.Do(ctx).StatusCode(&status)
	return status == http.StatusOK
}

// hasDefaultAccount reports whether pods can be created in the default namespace, which requires that the
// controllers work after a fresh start.
func (c client) hasDefaultAccount(ctx context.Context) bool {
	_, err := c.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err == nil
}
