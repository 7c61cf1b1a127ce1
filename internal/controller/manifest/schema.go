package manifest

import "encoding/json"

// SchemaID is where the schema of files of services and boost is known.
const SchemaID = "https://scaffold.dev/schema/services.json"

// Schema is the JSON schema of files of services and boost, for editors.
func Schema() []byte {
	service := schema{}
	for _, f := range fields {
		s := schema{"description": f.about}
		for k, v := range f.schema {
			s[k] = v
		}
		service[f.name] = s
	}
	all := schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SchemaID,
		"title": "Scaffold services and boost", "description": "what `scaffold apply -f` takes; docs/services.md and docs/boost.md explain it",
		"type": "object", "additionalProperties": false,
		"properties": schema{
			"services": schema{
				"type": []string{"object", "null"}, "description": "services by name",
				"propertyNames":        matching(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`),
				"additionalProperties": schema{"type": []string{"object", "null"}, "additionalProperties": false, "properties": service},
			},
			"boost": schema{
				"type": []string{"object", "null"}, "description": "which TCP connections agents carry over long paths", "additionalProperties": false,
				"properties": schema{
					"sites":   schemaOf(siteKeys, "where hosts are, and which agents serve them, by name"),
					"entries": schemaOf(entryKeys, "connections between two sites that are to be boosted, by name"),
				},
			},
		},
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // plain maps and strings
	}
	return append(text, '\n')
}
