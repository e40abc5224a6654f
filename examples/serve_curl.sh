#!/bin/sh
# A model of four features behind `tutti serve model.keras --http :8000`, asked by curl: serve_curl.sh localhost:8000 model features
set -eu
address=$1 model=$2 input=$3

curl -sf "$address/v2/health/ready"; echo
curl -sf "$address/v2/models/$model"; echo

# The Open Inference Protocol: two samples.
curl -sf "$address/v2/models/$model/infer" \
  -d "{\"inputs\": [{\"name\": \"$input\", \"shape\": [2, 4], \"datatype\": \"FP32\", \"data\": [1, 2, 3, 4, 5, 6, 7, 8]}]}"; echo

# The same as TF Serving has it, by rows and by columns.
curl -sf "$address/v1/models/$model:predict" -d '{"instances": [[1, 2, 3, 4], [5, 6, 7, 8]]}'; echo
curl -sf "$address/v1/models/$model:predict" -d "{\"inputs\": {\"$input\": [[1, 2, 3, 4], [5, 6, 7, 8]]}}"; echo

# Tensors as bytes: the JSON, then four floats; and an answer as bytes too.
json='{"inputs": [{"name": "'$input'", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}],
       "parameters": {"binary_data_output": true}}'
{ printf %s "$json"; printf '\0\0\200\77\0\0\0\100\0\0\100\100\0\0\200\100'; } |  # 1, 2, 3, 4
  curl -sf "$address/v2/models/$model/infer" -H "Inference-Header-Content-Length: ${#json}" --data-binary @- | tail -c 12 | od -An -tf4
