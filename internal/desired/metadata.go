package desired

import "encoding/json"

// metadata gives the labels and annotations that the author of an object gave it.
func metadata(raw []byte) (labels, annotations map[string]string, err error) {
	var o struct {
		Metadata struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	err = json.Unmarshal(raw, &o)
	return o.Metadata.Labels, o.Metadata.Annotations, err
}
