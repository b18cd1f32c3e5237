package remote

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
)

// hardening: A12
func TestThrottledRegistryGetsNoRequests(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	r := testRemote(t, func(o *Options) { o.Now = func() time.Time { return now } })
	err := read(t, r, ref)
	ocitest.WantCode(t, err, ErrThrottled)
	if !strings.Contains(err.Error(), "until 2026-01-02T04:04:05Z") {
		t.Errorf("%v", err)
	}
	before := f.Count("/")
	ocitest.WantCode(t, read(t, r, ref), ErrThrottled)
	if f.Count("/") != before {
		t.Error("the registry was asked again before its time")
	}
	other := ocitest.NewRegistry(t)
	if err := read(t, r, other.Publish(t, ocitest.Hello(t), "v1")); err != nil {
		t.Errorf("another registry: %v", err)
	}
	now = now.Add(longestRetryAfter)
	f.Fault = nil
	if err := read(t, r, ref); err != nil {
		t.Errorf("after the time: %v", err)
	}
}

// hardening: A12
func TestRetriesAreBounded(t *testing.T) {
	f := ocitest.NewRegistry(t)
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	var n atomic.Int64
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
		if n.Add(1)%3 == 0 {
			return false
		}
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	var waited []time.Duration
	r := testRemote(t, func(o *Options) {
		o.Sleep = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	})
	if err := read(t, r, ref); err != nil {
		t.Fatal(err)
	}
	for _, d := range waited {
		if d != 2*time.Second {
			t.Errorf("waited %s", d)
		}
	}
	f.Fault = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	ocitest.WantCode(t, read(t, r, ref), ErrRegistryUnavailable)
}

// hardening: A13
func TestSlowRegistry(t *testing.T) {
	tests := map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"Headers": func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		},
		"Blob": func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			w.WriteHeader(http.StatusOK)
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte{0}); err != nil {
					break
				}
				w.(http.Flusher).Flush()
				wait(r.Context(), 5*time.Millisecond)
			}
			return true
		},
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			f := ocitest.NewRegistry(t)
			ref := f.Publish(t, ocitest.Hello(t), "v1")
			f.Fault = fault
			r := testRemote(t, func(o *Options) { o.Patience, o.MinRate, o.Attempts = 50*time.Millisecond, 1<<30, 1 })
			err := read(t, r, ref)
			ocitest.WantCode(t, err, ErrRegistryUnavailable)
		})
	}
}

func wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

// hardening: A14
func TestWrongContentLength(t *testing.T) {
	tests := map[string]func(w http.ResponseWriter, data []byte){
		"AnnouncedLonger": func(w http.ResponseWriter, data []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)+1))
			_, _ = w.Write(append(data, 0))
		},
		"AnnouncedShorter": func(w http.ResponseWriter, data []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)-1))
			_, _ = w.Write(data[:len(data)-1])
		},
		"LongerWithoutLength": func(w http.ResponseWriter, data []byte) {
			w.(http.Flusher).Flush()
			_, _ = w.Write(append(data, 0))
		},
		"ShorterWithoutLength": func(w http.ResponseWriter, data []byte) {
			w.(http.Flusher).Flush()
			_, _ = w.Write(data[:len(data)-1])
		},
		"Endless": func(w http.ResponseWriter, data []byte) {
			for {
				if _, err := w.Write(data); err != nil {
					return
				}
			}
		},
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			f := ocitest.NewRegistry(t)
			ref := f.Publish(t, ocitest.Hello(t), "v1")
			f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				_, hex, found := strings.Cut(r.URL.Path, "/blobs/")
				if found {
					answer(w, append([]byte(nil), f.Blobs[oci.MustParseDigest(hex)]...))
				}
				return found
			}
			store := storetest.New(t)
			_, m, err := fetchYAML(t.Context(), testRemote(t, nil), store, ref)
			ocitest.WantCode(t, err, oci.ErrSizeMismatch)
			if m.Base != nil && store.Has(m.Base.Digest) {
				t.Error("the store kept the blob")
			}
		})
	}
}

// hardening: A14
func TestEndlessManifest(t *testing.T) {
	f := ocitest.NewRegistry(t)
	f.Publish(t, ocitest.Hello(t), "v1")
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		w.Header().Set("Content-Type", string(oci.MediaTypeOCIManifest))
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return true
			}
		}
	}
	ocitest.WantCode(t, read(t, testRemote(t, nil), f.Ref("v1")), oci.ErrManifestTooLarge)
}

// hardening: A15
func TestBrokenDownloadIsResumed(t *testing.T) {
	big, err := image.Build(t.Context(), image.Input{
		PackageYAML: []byte(strings.Repeat(ocitest.HelloYAML, 10)),
		Extra: []image.ExtraLayer{{Annotation: "noise", Files: []image.File{{
			Path: "x", Data: ocitest.Noise(1 << 16),
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	layer := ocitest.Layers(t, big)[1]
	for _, ranges := range []bool{true, false} {
		t.Run(fmt.Sprintf("Ranges=%t", ranges), func(t *testing.T) {
			f := ocitest.NewRegistry(t)
			f.Config.ErrorLog = ocitest.Quiet
			ref := f.Publish(t, big, "v1")
			var broken atomic.Int64
			f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, layer.Digest.Hex()) {
					return false
				}
				if !ranges {
					r.Header.Del("Range")
				}
				n := broken.Add(1)
				if n > 50 {
					return false
				}
				cut(w, r, f.Blobs[layer.Digest], int(n)*1200)
				return true
			}
			store := storetest.New(t)
			r := testRemote(t, nil)
			blob, err := r.openBlob(t.Context(), ref, layer)
			if err != nil {
				t.Fatal(err)
			}
			defer blob.Close()
			if err := store.Put(t.Context(), layer.Digest, layer.Size, blob); err != nil {
				t.Fatal(err)
			}
			if broken.Load() <= 50 {
				t.Errorf("the connection broke %d times", broken.Load())
			}
		})
	}
}

// cut serves a blob up to a byte and breaks the connection there.
func cut(w http.ResponseWriter, r *http.Request, data []byte, at int) {
	start := 0
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &start); err == nil {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(data)-1, len(data)))
		w.Header().Set("Content-Length", strconv.Itoa(len(data)-start))
		w.WriteHeader(http.StatusPartialContent)
	} else {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	}
	_, _ = w.Write(data[start:max(start, min(at, len(data)))])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// hardening: A13, A15
func TestDownloadWithoutProgressFails(t *testing.T) {
	f := ocitest.NewRegistry(t)
	f.Config.ErrorLog = ocitest.Quiet
	ref := f.Publish(t, ocitest.Hello(t), "v1")
	var n atomic.Int64
	f.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		n.Add(1)
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	ocitest.WantCode(t, read(t, testRemote(t, nil), ref), ErrRegistryUnavailable)
	if n.Load() > maxStalls+2 {
		t.Errorf("%d attempts", n.Load())
	}
}
