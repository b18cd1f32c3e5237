package up

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"

	sites "github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"github.com/xpkg-dev/xpkg/internal/up/registry"
)

// registryGrace is the maximum time that a stop waits for requests to the registry.
const registryGrace = time.Second

// registryServer serves the images of the data directory.
type registryServer struct {
	server  *http.Server
	images  *olareg.Server
	pages   *registryPages
	log     *logFile
	lock    sites.FolderLock
	address string
	done    chan struct{}
	err     error // to be read after done is closed
}

// startRegistry starts the registry on an open listener. It removes the unfinished uploads of a
// killed process first. It fails if `xpkg registry serve` uses the data directory.
func startRegistry(o Options, d *datadir.Dir, listener net.Listener, uses registry.Uses) (_ *registryServer, err error) {
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
	if err := sites.RemoveUploads(d.Registry()); err != nil {
		return nil, ErrDataDirUnusable.New(err, "cannot remove unfinished uploads from %s", d.Registry())
	}
	log, err := openLog(d.Logs(), "registry.log")
	if err != nil {
		return nil, err
	}
	yes := true
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	sites.RemoveEmpty(d.Registry(), sites.ContentGrace, logger)
	layouts := sites.NewLayouts(d.Registry(), logger)
	images := olareg.New(config.Config{
		Storage: config.ConfigStorage{
			StoreType: config.StoreDir, RootDir: d.Registry(), GC: sites.GarbageCollection{}.Config(),
		},
		API: config.ConfigAPI{
			DeleteEnabled: &yes,
			Blob:          config.ConfigAPIBlob{DeleteEnabled: &yes},
			Referrer:      config.ConfigAPIReferrer{PageCacheLimit: sites.MostReferrerLists},
		},
		Log: layouts.Log(),
	})
	address := listener.Addr().String()
	web := &registryPages{options: sites.LocalOptions{
		Host: address, Images: images, Root: d.Registry(), Dir: filepath.Join(d.Cache(), "pages"), Log: logger,
	}}
	limiter := limit.New(limit.OfProcess(), &limit.Disk{Dir: d.Registry()})
	handler := registry.Handler(layouts.Handler(sites.Conforming(images)), registry.Options{
		Token: token, Login: LoginCommand(State{DataDir: d.Path, Registry: address}), MaxUpload: o.MaxUpload, Limiter: limiter, Uses: uses,
		Repositories: sites.NewLocalList(d.Registry(), logger), Pages: web, Changed: web.changed,
		Report: func(message string) {
			logger.Warn(message)
			o.Progress(Event{Stage: StageRegistry, Warning: message})
		},
	})
	r := &registryServer{
		server:  &http.Server{Handler: handler},
		images:  images,
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
	return errors.Join(err, r.pages.close(), sites.CloseImages(r.images), r.log.Close(), r.lock.Close())
}
