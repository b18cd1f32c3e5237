package desired

import (
	"encoding/json"
	"fmt"
)

// Service is where the program of a package answers webhooks.
type Service struct {
	Name      string
	Namespace string
}

// The port and the path at which the program of a package answers webhooks.
const (
	webhookPort    = 9443
	conversionPath = "/convert"
)

// withConversion names the service of the package in a definition whose versions
// are converted by a webhook. Authors leave it out, since they cannot know it.
func withConversion(raw []byte, webhooks Service) ([]byte, error) {
	var probe struct {
		Spec struct {
			Conversion struct {
				Strategy string `json:"strategy"`
			} `json:"conversion"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &probe); err != nil {
		return nil, err
	}
	if probe.Spec.Conversion.Strategy != "Webhook" {
		return raw, nil
	}
	var crd map[string]any
	if err := json.Unmarshal(raw, &crd); err != nil {
		return nil, err
	}
	config, err := nested(crd, "spec", "conversion", "webhook", "clientConfig")
	if err != nil {
		return nil, err
	}
	delete(config, "url")
	config["service"] = map[string]any{
		"name": webhooks.Name, "namespace": webhooks.Namespace, "port": webhookPort, "path": conversionPath,
	}
	return json.Marshal(crd)
}

// nested gives the map at a path, and makes what is missing on the way.
func nested(m map[string]any, path ...string) (map[string]any, error) {
	for _, key := range path {
		if m[key] == nil {
			m[key] = map[string]any{}
		}
		next, ok := m[key].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", key)
		}
		m = next
	}
	return m, nil
}
