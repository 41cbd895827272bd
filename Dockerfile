# The tests and the static checks on a clean machine: docker build -t jostle . && docker run --rm jostle
# For work inside: docker run --rm -it jostle bash; the command line is .venv/bin/jostle.
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends make git && rm -rf /var/lib/apt/lists/*
WORKDIR /jostle
COPY . .
RUN make .venv/.dev
CMD ["sh", "-c", "make test && make check"]
