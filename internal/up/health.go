package up

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// healthLimit is the maximum duration of a health check.
const healthLimit = 3 * time.Second

// Check is the health of a part.
type Check struct {
	// Name is "API server", "registry", "package manager" or "Crossplane core".
	Name string `json:"name"`
	// Address is the checked address, or the process of the manager.
	Address string `json:"address"`
	// Healthy reports whether the part responded as expected.
	Healthy bool `json:"healthy"`
	// Error is the reason if the part is not healthy.
	Error string `json:"error,omitempty"`
	// Fix is the fix of the error, if it is known.
	Fix string `json:"fix,omitempty"`
	// Took is the response time in nanoseconds. It is zero for the manager, which writes its state itself.
	Took time.Duration `json:"took"`
}

func checkAPI(ctx context.Context, s State) Check {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return Check{Name: "API server", Address: s.Server, Error: err.Error()}
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return Check{Name: "API server", Address: s.Server, Error: err.Error()}
	}
	return check(ctx, client, "API server", s.Server, "/readyz")
}

func checkRegistry(ctx context.Context, s State) Check {
	return check(ctx, http.DefaultClient, "registry", "http://"+s.Registry, "/v2/")
}

func checkManager(s State) Check {
	c := Check{Name: "package manager", Address: "process " + strconv.Itoa(s.PID), Healthy: s.ManagerFailure == ""}
	if !c.Healthy {
		c.Error, c.Fix = "exited, and will be restarted: "+s.ManagerFailure, s.ManagerFix
	}
	return c
}

// checkCore checks the Crossplane core of a control plane.
func checkCore(ctx context.Context, c Core) Check {
	out := check(ctx, http.DefaultClient, "Crossplane core", c.Health, "")
	if !out.Healthy {
		out.Fix = "Read its log with `xpkg logs crossplane`."
	}
	return out
}

func check(ctx context.Context, client *http.Client, name, address, path string) Check {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	begin := time.Now()
	err := get(ctx, client, address+path)
	c := Check{Name: name, Address: address, Healthy: err == nil, Took: time.Since(begin)}
	if err != nil {
		c.Error = err.Error()
	}
	return c
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// The registry responds with 401 to a ping without credentials, although reads need none.
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusUnauthorized {
		return errors.New(response.Status)
	}
	return nil
}
