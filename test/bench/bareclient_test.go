package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A bare client is the floor: it creates CRDs, and does nothing else. It shares no code with xpkg, and
// requests responses of the size that xpkg requests.
type bareClient struct {
	host   string
	client *http.Client
}

// concurrency is the number of concurrent calls of the bare client, which is the initial limit of
// xpkg (package apply).
const concurrency = 10

func newBareClient(t testing.TB, cfg *rest.Config) bareClient {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return bareClient{cfg.Host, client}
}

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	metadataOnly    = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataList    = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	discovery       = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// call sends one request and decodes the response into out, unless out is nil.
func (c bareClient) call(ctx context.Context, method, path, accept string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.host+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, raw)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(raw, out)
}

// each calls f for every item, with the concurrency of the bare client.
func each[T any](items []T, f func(T) error) error {
	var group errgroup.Group
	group.SetLimit(concurrency)
	for _, item := range items {
		group.Go(func() error { return f(item) })
	}
	return group.Wait()
}

// create creates CRDs and waits until all of them are served.
func (c bareClient) create(t testing.TB, definitions [][]byte, kinds []schema.GroupResource) {
	t.Helper()
	err := each(definitions, func(raw []byte) error {
		return c.call(t.Context(), http.MethodPost, definitionsPath, metadataOnly, raw, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		missing, err := c.missing(t.Context(), kinds)
		if err != nil {
			t.Fatal(err)
		}
		if missing == 0 {
			return
		}
		<-tick.C
	}
}

// pollInterval is the interval of discovery requests, as in xpkg.
const pollInterval = 250 * time.Millisecond

// missing counts the kinds that are not served yet. Discovery lists a kind when its CRD is
// Established.
func (c bareClient) missing(ctx context.Context, kinds []schema.GroupResource) (int, error) {
	var doc apidiscovery.APIGroupDiscoveryList
	if err := c.call(ctx, http.MethodGet, "/apis", discovery, nil, &doc); err != nil {
		return 0, err
	}
	served := map[schema.GroupResource]bool{}
	for _, group := range doc.Items {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				served[schema.GroupResource{Group: group.Name, Resource: r.Resource}] = true
			}
		}
	}
	missing := 0
	for _, kind := range kinds {
		if !served[kind] {
			missing++
		}
	}
	return missing, nil
}

// names lists the existing CRDs of a bundle. A label selector makes the list shorter.
func (c bareClient) names(ctx context.Context, b bundle, selector string) ([]string, error) {
	var list metav1.PartialObjectMetadataList
	if err := c.call(ctx, http.MethodGet, definitionsPath+"?labelSelector="+
		selector, metadataList, nil, &list); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		if b.has(list.Items[i].Name) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// delete deletes CRDs. It does not wait until they are gone.
func (c bareClient) delete(t testing.TB, names []string) {
	t.Helper()
	err := each(names, func(name string) error {
		return c.call(t.Context(), http.MethodDelete, definitionsPath+"/"+name, metadataOnly, nil, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c bareClient) untilGone(t testing.TB, b bundle) {
	t.Helper()
	wait.Until(t, limit, "the definitions are gone", func() (string, bool) {
		names, err := c.names(t.Context(), b, "")
		return fmt.Sprintf("%d left, %v", len(names), err), err == nil && len(names) == 0
	})
}

// bodies returns the CRDs of a package as JSON, and the kinds that they define.
func bodies(t testing.TB, stream []byte) (raw [][]byte, kinds []schema.GroupResource) {
	t.Helper()
	pkg, err := xpkg.Read(stream, xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range pkg.Objects {
		one, err := o.JSON()
		if err != nil {
			t.Fatal(err)
		}
		plural, group, _ := strings.Cut(o.Name, ".")
		raw, kinds = append(raw, one), append(kinds, schema.GroupResource{Group: group, Resource: plural})
	}
	return raw, kinds
}
