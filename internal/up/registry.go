package up

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	sites "github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/internal/up/registry"
)

// registryGrace is the maximum time that a stop waits for requests to the registry.
const registryGrace = time.Second

// registryServer serves the images of the data directory.
type registryServer struct {
	server  *http.Server
	store   *storage.Store
	pages   *registryPages
	log     *logFile
	lock    sites.FolderLock
	address string
	done    chan struct{}
	err     error // to be read after done is closed
}

// startRegistry starts the registry on an open listener. It fails if `xpkg registry serve` uses the data directory.
func startRegistry(
	o Options, d *datadir.Dir, listener net.Listener, uses registry.Uses,
) (_ *registryServer, err error) {
	lock, err := sites.LockFolder(d.Path, d.Registry())
	if err != nil {
		return nil, ErrDataDirUnusable.New(err, "cannot start the registry of %s", d.Path).
			WithDo("Stop `xpkg registry serve --dir %s`, or use another data directory with --data-dir.", d.Path)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	token, err := ensureToken(d)
	if err != nil {
		return nil, err
	}
	log, err := openLog(d.Logs(), "registry.log")
	if err != nil {
		return nil, err
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	store, images := sites.OpenStore(d.Registry(), sites.GarbageCollection{}, logger)
	address := listener.Addr().String()
	web := &registryPages{options: sites.LocalOptions{
		Host: address, Images: images, Store: store, Dir: filepath.Join(d.Cache(), "pages"), Log: logger,
	}}
	limiter := limit.New(limit.OfProcess(), &limit.Disk{Dir: d.Registry()})
	handler := registry.Handler(images, registry.Options{
		Token: token, Login: LoginCommand(State{DataDir: d.Path, Registry: address}), MaxUpload: o.MaxUpload,
		Limiter: limiter, Store: store, Uses: uses,
		Repositories: sites.NewLocalList(store, logger), Pages: web, Changed: web.changed,
		Report: func(message string) {
			logger.Warn(message)
			o.Progress(Event{Stage: StageRegistry, Warning: message})
		},
	})
	r := &registryServer{
		server:  &http.Server{Handler: handler},
		store:   store,
		pages:   web,
		log:     log,
		lock:    lock,
		address: address,
		done:    make(chan struct{}),
	}
	go func() {
		defer close(r.done)
		r.err = limiter.Serve(r.server, listener)
	}()
	return r, nil
}

// stop stops the registry. It aborts requests that take longer than registryGrace; an unfinished
// upload is no image.
func (r *registryServer) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), registryGrace)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = r.server.Close()
	}
	<-r.done
	return errors.Join(err, r.pages.close(), r.store.Close(), r.log.Close(), r.lock.Close())
}
